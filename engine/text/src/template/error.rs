//! What can be wrong with a chat template, or with what it is given.

/// Why a chat cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The model has no template.
    #[error(
        "the model has no chat template, and guessing its format would give wrong prompts; give it one: a GGUF file \
         holds it as `tokenizer.chat_template`, a folder as `chat_template.jinja` or in `tokenizer_config.json`"
    )]
    NoTemplate,
    /// The model has several templates, but not the one wanted.
    #[error("the model has no chat template named `{wanted}`; it has: {names}")]
    NoSuchTemplate {
        /// The name looked for.
        wanted: String,
        /// Names of the templates that are there.
        names: String,
    },
    /// The template is not Jinja, or uses what memra does not have.
    #[error("chat template, line {line}: {problem}")]
    Syntax {
        /// Line of the template, from 1.
        line: u32,
        /// What is wrong.
        problem: String,
    },
    /// The template does what Jinja does not allow, mostly because the chat lacks what it needs.
    #[error("chat template, line {line}: {problem}; the template cannot render these messages")]
    Render {
        /// Line of the template, from 1.
        line: u32,
        /// What is wrong.
        problem: String,
    },
    /// The template called `raise_exception`.
    #[error("the model's chat template refuses these messages: {message}")]
    Refused {
        /// What the template says.
        message: String,
    },
    /// The template takes too long.
    #[error(
        "chat template, line {line}: stopped after {steps} steps; it does not end, or the chat is too long for it"
    )]
    Steps {
        /// Line of the template, from 1.
        line: u32,
        /// The steps allowed.
        steps: u64,
    },
    /// The template takes too much memory.
    #[error(
        "chat template, line {line}: stopped as it would take more than {bytes} bytes beside the chat; it builds a text \
         without end, or the chat is too long for it"
    )]
    Memory {
        /// Line of the template, from 1.
        line: u32,
        /// The bytes allowed.
        bytes: usize,
    },
    /// The template calls itself without end, or builds values inside of values.
    #[error("chat template, line {line}: stopped as calls or values are nested too deep")]
    Depth {
        /// Line of the template, from 1.
        line: u32,
    },
    /// The chat is not one.
    #[error("{0}")]
    Chat(String),
}
