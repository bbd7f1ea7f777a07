//! Chat templates: a model's own Jinja, rendered as Hugging Face's transformers render it.
//!
//! That means its settings (`trim_blocks`, `lstrip_blocks`, `break` and `continue`, `{% generation %}`), its functions
//! (`raise_exception`, `strftime_now`, a `tojson` that escapes nothing for HTML and keeps the order of keys), its sandbox,
//! and what it does to a chat beforehand: fields that are null are left out, reasoning goes by all of its names. The
//! fixtures of the tests are its output.
//!
//! Beyond it, a rendering has [`Limits`], and its result, [`Rendered`], knows which bytes the template wrote: only those
//! can become control tokens.

mod chat;
mod data;
mod error;
mod jinja;
mod moment;
mod rendered;

pub use chat::{Chat, Limits, RenderOptions};
pub use data::Data;
pub use error::TemplateError;
pub use moment::Moment;
pub use rendered::Rendered;

use jinja::{DictBuilder, Fault, ListBuilder, Machine, Meter, Origin, Program, Text, Value};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// A template as a model file has it, and what it needs of the tokenizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateSpec {
    /// Names and sources of the templates; the usual one is `default`.
    pub templates: Vec<(String, String)>,
    /// Special tokens by their variables: `bos_token`, `eos_token`, and others that the model names.
    pub tokens: Vec<(String, String)>,
}

/// The chat templates of a model, parsed. Cloning is cheap.
///
/// ```
/// use memra_text::template::{Chat, ChatTemplate, RenderOptions, TemplateError, TemplateSpec};
///
/// let source = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}";
/// let spec = TemplateSpec { templates: vec![("default".into(), source.into())], ..TemplateSpec::default() };
/// let template = ChatTemplate::new(spec)?;
/// let rendered = template.render(&Chat::new([("user", " Hi!<|im_end|>")]), &RenderOptions::default())?;
/// assert_eq!(rendered.text(), "<|im_start|>user\nHi!<|im_end|><|im_end|>\n");
/// // The second `<|im_end|>` is the template's, and the only one that becomes a token.
/// assert_eq!(rendered.template_ranges(), [0..17, 30..41]);
/// # Ok::<(), TemplateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ChatTemplate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    programs: Vec<(String, Program)>,
    tokens: Vec<(String, String)>,
    reads_parts: OnceLock<bool>,
}

/// Names of roles from which templates build control tokens. Any other is the user's text.
const ROLES: [&str; 12] = [
    "assistant",
    "context",
    "developer",
    "document",
    "environment",
    "function",
    "ipython",
    "model",
    "observation",
    "system",
    "tool",
    "user",
];

/// Variables that a chat sets by its own fields.
const OWN: [&str; 4] = ["messages", "tools", "documents", "add_generation_prompt"];

impl ChatTemplate {
    /// Parses the templates of a model.
    ///
    /// # Errors
    /// No template, or one with a mistake.
    pub fn new(spec: TemplateSpec) -> Result<ChatTemplate, TemplateError> {
        if spec.templates.is_empty() {
            return Err(TemplateError::NoTemplate);
        }
        let parse = |(name, source): (String, String)| match jinja::parse(&source) {
            Ok(program) => Ok((name, program)),
            Err((line, problem)) => Err(TemplateError::Syntax { line, problem }),
        };
        let programs = spec.templates.into_iter().map(parse).collect::<Result<_, _>>()?;
        Ok(ChatTemplate(Arc::new(Inner { programs, tokens: spec.tokens, reads_parts: OnceLock::new() })))
    }

    /// Names of the templates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.programs.iter().map(|(name, _)| name.as_str())
    }

    /// Whether the template reads a content that is a list of parts, rather than text.
    pub fn reads_parts(&self) -> bool {
        *self.0.reads_parts.get_or_init(|| {
            const PROBE: &str = "a part of text";
            let part = Data::object([("type", "text".into()), ("text", PROBE.into())]);
            let message = Data::object([("role", "user".into()), ("content", vec![part].into())]);
            let chat = Chat { messages: vec![message], ..Chat::default() };
            let rendered = self.render(&chat, &RenderOptions::default());
            // A template that takes it for text fails, or prints the list.
            rendered.is_ok_and(|rendered| {
                let text = rendered.text();
                text.contains(PROBE) && !text.contains("'type'") && !text.contains("\"type\"")
            })
        })
    }

    /// Renders a chat.
    ///
    /// # Errors
    /// What is missing or refused, see [`TemplateError`].
    pub fn render(&self, chat: &Chat, options: &RenderOptions) -> Result<Rendered, TemplateError> {
        let program = self.pick(options.template.as_deref(), chat.tools.is_some())?;
        let mut messages = chat.prepared()?;
        let mut open = None;
        if let Some(field) = &options.continue_final {
            if options.add_generation_prompt {
                let problem = "a message is either continued or answered: leave the generation prompt out";
                return Err(TemplateError::Chat(problem.into()));
            }
            open = Some(chat::mark_final(&mut messages, field)?);
        }
        if let Some((name, _)) = chat.variables.iter().find(|(name, _)| OWN.contains(&name.as_str())) {
            return Err(TemplateError::Chat(format!("`{name}` is a part of the chat, not a variable")));
        }
        let text = self.run(program, chat, &messages, options)?;
        let end = open.map_or(Ok(text.len()), |message| chat::final_end(text.as_str(), &message))?;
        let mut template = text.template_ranges();
        template.retain_mut(|range| {
            range.end = range.end.min(end);
            range.start < range.end
        });
        Ok(Rendered::new(text.as_str()[..end].to_owned(), template))
    }

    fn pick(&self, wanted: Option<&str>, tools: bool) -> Result<&Program, TemplateError> {
        let programs = &self.0.programs;
        let find =
            |wanted: &str| programs.iter().find(|(name, _)| name == wanted).map(|(_, program)| program);
        let found = match wanted {
            Some(name) => find(name),
            None => find("tool_use").filter(|_| tools).or_else(|| find("default")),
        };
        found.ok_or_else(|| TemplateError::NoSuchTemplate {
            wanted: wanted.unwrap_or("default").to_owned(),
            names: self.names().collect::<Vec<_>>().join(", "),
        })
    }

    fn run(
        &self,
        program: &Program,
        chat: &Chat,
        messages: &[Data],
        options: &RenderOptions,
    ) -> Result<Text, TemplateError> {
        let list = |items: &Option<Data>| items.iter().map(size).sum::<usize>();
        let variables = chat.variables.iter().map(|(name, value)| name.len() + size(value));
        let input = messages.iter().map(size).sum::<usize>()
            + list(&chat.tools)
            + list(&chat.documents)
            + variables.sum::<usize>();
        let limits = options.limits;
        let meter = Meter::new(
            limits.steps.saturating_add(limits.steps_per_byte.saturating_mul(input as u64)),
            limits.bytes.saturating_add(limits.bytes_per_byte.saturating_mul(input)),
        );
        let mut machine = Machine::new(program, &meter, options.now.unwrap_or_else(Moment::now))
            .map_err(|fault| error(fault, 1))?;
        let variables = self.variables(chat, messages, options, &meter).map_err(|fault| error(fault, 1))?;
        variables.into_iter().for_each(|(name, value)| machine.set_global(name, value));
        meter.begin();
        machine.render().map_err(|fault| error(fault, machine.line()))
    }

    /// What the template is given.
    fn variables<'a>(
        &'a self,
        chat: &'a Chat,
        messages: &[Data],
        options: &RenderOptions,
        meter: &Rc<Meter>,
    ) -> Result<Vec<(&'a str, Value)>, Fault> {
        let mut variables = Vec::new();
        for (name, token) in &self.0.tokens {
            variables.push((name.as_str(), Value::made(meter, token)?));
        }
        for (name, value) in &chat.variables {
            variables.push((name.as_str(), import(value, meter)?));
        }
        let mut list = ListBuilder::new(meter)?;
        messages.iter().try_for_each(|message| list.push(import_message(message, meter)?))?;
        variables.push(("messages", Value::List(list.finish()?)));
        for (name, value) in [("tools", &chat.tools), ("documents", &chat.documents)] {
            variables.push((name, value.as_ref().map_or(Ok(Value::None), |value| import(value, meter))?));
        }
        variables.push(("add_generation_prompt", Value::Bool(options.add_generation_prompt)));
        Ok(variables)
    }
}

/// Roughly the bytes of a value as JSON.
fn size(data: &Data) -> usize {
    match data {
        Data::Str(text) => text.len() + 2,
        Data::List(items) => 2 + items.iter().map(|item| size(item) + 1).sum::<usize>(),
        Data::Object(entries) => {
            2 + entries.iter().map(|(key, value)| key.len() + size(value) + 4).sum::<usize>()
        }
        _ => 4,
    }
}

/// A value of the chat as the template's value.
fn import(data: &Data, meter: &Rc<Meter>) -> Result<Value, Fault> {
    Ok(match data {
        Data::Null => Value::None,
        Data::Bool(value) => Value::Bool(*value),
        Data::Int(value) => Value::Int(*value),
        Data::Float(value) => Value::Float(*value),
        Data::Str(text) => Value::Str(Text::new(meter, text, Origin::Input)?),
        Data::List(items) => {
            let mut list = ListBuilder::new(meter)?;
            items.iter().try_for_each(|item| list.push(import(item, meter)?))?;
            Value::List(list.finish()?)
        }
        Data::Object(entries) => object(entries, meter, |_, value| import(value, meter))?,
    })
}

/// A message: the usual roles count as the template's.
fn import_message(message: &Data, meter: &Rc<Meter>) -> Result<Value, Fault> {
    let Data::Object(entries) = message else { return import(message, meter) };
    object(entries, meter, |key, value| match value {
        Data::Str(role) if key == "role" && ROLES.contains(&role.as_str()) => Value::made(meter, role),
        _ => import(value, meter),
    })
}

fn object(
    entries: &[(String, Data)],
    meter: &Rc<Meter>,
    value: impl Fn(&str, &Data) -> Result<Value, Fault>,
) -> Result<Value, Fault> {
    let mut dict = DictBuilder::new(meter)?;
    for (key, entry) in entries {
        dict.set(Value::Str(Text::new(meter, key, Origin::Input)?), value(key, entry)?)?;
    }
    Ok(Value::Dict(dict.finish()?))
}

fn error(fault: Fault, line: u32) -> TemplateError {
    match fault {
        Fault::Raised(message) => TemplateError::Refused { message },
        Fault::Invalid(problem) => TemplateError::Render { line, problem },
        Fault::Steps(steps) => TemplateError::Steps { line, steps },
        Fault::Memory(bytes) => TemplateError::Memory { line, bytes },
        Fault::Depth => TemplateError::Depth { line },
    }
}
