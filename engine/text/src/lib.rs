//! Text: tokenizers, streaming detokenisation, chat templates
