//! The chat templates of a model, from GGUF metadata or the documents of a folder.

use crate::Error;
use memra_formats::{Checkpoint, Gguf, Json, ModelFolder};
use memra_text::template::{ChatTemplate, Data, TemplateSpec};

/// Special tokens that templates may name: their variables, and the GGUF keys of their ids.
const TOKENS: [(&str, &str); 4] = [
    ("bos_token", "tokenizer.ggml.bos_token_id"),
    ("eos_token", "tokenizer.ggml.eos_token_id"),
    ("unk_token", "tokenizer.ggml.unknown_token_id"),
    ("pad_token", "tokenizer.ggml.padding_token_id"),
];

/// The key of a GGUF file's template; that of another has its name behind a dot.
const GGUF_KEY: &str = "tokenizer.chat_template";

/// The name of the template that counts where none is asked for.
const DEFAULT: &str = "default";

/// Reads and parses the chat templates of a model.
///
/// # Errors
/// There is none, one with a mistake, or damaged documents.
pub fn chat_template(checkpoint: &Checkpoint) -> Result<ChatTemplate, Error> {
    let spec = match checkpoint {
        Checkpoint::Gguf(gguf) => of_gguf(gguf)?,
        Checkpoint::Folder(folder) => of_folder(folder)?,
        Checkpoint::Weights(_) => TemplateSpec::default(),
    };
    Ok(ChatTemplate::new(spec)?)
}

fn of_gguf(gguf: &Gguf) -> Result<TemplateSpec, Error> {
    let meta = gguf.metadata();
    let mut spec = TemplateSpec::default();
    if let Some(source) = meta.find::<&str>(GGUF_KEY)? {
        spec.templates.push((DEFAULT.to_owned(), source.to_owned()));
    }
    for (key, _) in meta.iter() {
        let name = key.strip_prefix(GGUF_KEY).and_then(|rest| rest.strip_prefix('.'));
        if let Some(name) = name {
            spec.templates.push((name.to_owned(), meta.get::<&str>(key)?.to_owned()));
        }
    }
    let names = meta.find::<Vec<&str>>("tokenizer.ggml.tokens")?.unwrap_or_default();
    for (variable, key) in TOKENS {
        let id = meta.find::<u32>(key)?;
        let token = id.and_then(|id| names.get(id as usize));
        spec.tokens.extend(token.map(|token| (variable.to_owned(), (*token).to_owned())));
    }
    Ok(spec)
}

fn of_folder(folder: &ModelFolder) -> Result<TemplateSpec, Error> {
    let config = folder.tokenizer_config()?;
    let find = |key: &str| config.as_ref().map_or(Ok(None), |config: &Json| config.find::<Data>(key));
    let mut spec = TemplateSpec::default();
    if let Some(Data::List(named)) = find("chat_template")? {
        for entry in &named {
            let text = |key: &str| entry.get(key).and_then(Data::as_str).map(str::to_owned);
            spec.templates.extend(text("name").zip(text("template")));
        }
    }
    // A file of its own counts before the document.
    if let Some(source) = folder.chat_template()? {
        spec.templates.retain(|(name, _)| name != DEFAULT);
        spec.templates.push((DEFAULT.to_owned(), source));
    }
    for (variable, _) in TOKENS {
        let token = find(variable)?;
        let name = token.as_ref().and_then(|token| token.get("content").unwrap_or(token).as_str());
        spec.tokens.extend(name.map(|name| (variable.to_owned(), name.to_owned())));
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memra_formats::GgufWriter;
    use memra_text::template::{Chat, RenderOptions};
    use std::fs;
    use std::path::Path;

    fn gguf(templates: &[(&str, &str)]) -> Checkpoint {
        let mut writer = GgufWriter::new();
        writer.metadata("general.architecture", "no such").unwrap();
        for (key, source) in templates {
            writer.metadata(key, *source).unwrap();
        }
        writer.metadata("tokenizer.ggml.tokens", &["<a>", "<b>"][..]).unwrap();
        writer.metadata("tokenizer.ggml.bos_token_id", &1u32).unwrap();
        writer.metadata("tokenizer.ggml.eos_token_id", &7u32).unwrap();
        Checkpoint::Gguf(Gguf::parse(writer.begin(Vec::new()).unwrap().finish().unwrap()).unwrap())
    }

    fn render(checkpoint: &Checkpoint, template: Option<&str>, tools: bool) -> Result<String, Error> {
        let tools = tools.then(|| Data::List(Vec::new()));
        let chat = Chat { tools, ..Chat::new([("user", "x")]) };
        let options = RenderOptions { template: template.map(str::to_owned), ..RenderOptions::default() };
        Ok(chat_template(checkpoint)?.render(&chat, &options)?.text().to_owned())
    }

    #[test]
    fn templates_of_gguf_files() {
        let source = "{{ bos_token }}{{ eos_token is defined }}";
        let file = gguf(&[
            ("tokenizer.chat_template", source),
            ("tokenizer.chat_template.tool_use", "tools"),
            ("tokenizer.chat_template.rag", "rag"),
        ]);
        assert_eq!(render(&file, None, false).unwrap(), "<b>False");
        assert_eq!(render(&file, None, true).unwrap(), "tools");
        assert_eq!(render(&file, Some("rag"), true).unwrap(), "rag");
        let missing = render(&file, Some("x"), false).unwrap_err().to_string();
        assert!(missing.contains("named `x`; it has: default, tool_use, rag"), "{missing}");
        assert!(render(&gguf(&[]), None, false).unwrap_err().to_string().contains("no chat template"));
        let broken = render(&gguf(&[("tokenizer.chat_template", "\n{% if %}")]), None, false).unwrap_err();
        assert!(broken.to_string().contains("line 2"), "{broken}");
    }

    fn folder(path: &Path, documents: &[(&str, &str)]) -> Checkpoint {
        let header = b"{}      ";
        fs::write(path.join("model.safetensors"), [&8u64.to_le_bytes()[..], header].concat()).unwrap();
        fs::write(path.join("config.json"), "{}").unwrap();
        for (name, text) in documents {
            fs::write(path.join(name), text).unwrap();
        }
        Checkpoint::open(path).unwrap()
    }

    #[test]
    fn templates_of_folders() {
        let place = tempfile::tempdir().unwrap();
        let one = r#"{"chat_template":"{{ bos_token ~ eos_token ~ unk_token }}","bos_token":"<s>",
            "eos_token":{"content":"</s>","lstrip":false},"unk_token":null}"#;
        let checkpoint = folder(place.path(), &[("tokenizer_config.json", one)]);
        assert_eq!(render(&checkpoint, None, true).unwrap(), "<s></s>");
        let several =
            r#"{"chat_template":[{"name":"default","template":"a"},{"name":"tool_use","template":"b"}]}"#;
        let checkpoint = folder(place.path(), &[("tokenizer_config.json", several)]);
        assert_eq!(render(&checkpoint, None, false).unwrap(), "a");
        assert_eq!(render(&checkpoint, None, true).unwrap(), "b");
        let checkpoint = folder(place.path(), &[("chat_template.jinja", "file")]);
        assert_eq!(render(&checkpoint, None, false).unwrap(), "file");
        let bare = tempfile::tempdir().unwrap();
        assert!(render(&folder(bare.path(), &[]), None, false).is_err());
    }
}
