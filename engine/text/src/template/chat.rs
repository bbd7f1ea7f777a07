//! What is rendered, and how.

use super::jinja::is_space;
use super::{Data, Moment, TemplateError};
use serde::Deserialize;

/// A conversation, with what else its template may show to the model. Parses from JSON.
///
/// Messages are objects with `role`, `content` and whatever the template reads: `tool_calls`, `reasoning_content`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Chat {
    /// The messages, first to last.
    pub messages: Vec<Data>,
    /// Tools that the model may call: a list of JSON schemas of functions, as OpenAI's API has them.
    #[serde(default)]
    pub tools: Option<Data>,
    /// Documents to answer from: a list of objects with `title` and `text`.
    #[serde(default)]
    pub documents: Option<Data>,
    /// Other variables of the template, such as `enable_thinking`.
    #[serde(default, rename = "chat_template_kwargs", deserialize_with = "entries")]
    pub variables: Vec<(String, Data)>,
}

fn entries<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, Data)>, D::Error> {
    match Data::deserialize(deserializer)? {
        Data::Object(entries) => Ok(entries),
        Data::Null => Ok(Vec::new()),
        _ => Err(serde::de::Error::custom("an object of variables is needed")),
    }
}

/// What a rendering may take. Beside the constants, every byte of input allows some more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps: evaluated expressions and statements, and the like amount of copied bytes. A million take about 50 ms.
    pub steps: u64,
    /// Steps for every byte of input.
    pub steps_per_byte: u64,
    /// Bytes that strings, lists and the output may take at one time, beside the input.
    pub bytes: usize,
    /// Such bytes for every byte of input.
    pub bytes_per_byte: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { steps: 2_000_000, steps_per_byte: 32, bytes: 4 << 20, bytes_per_byte: 16 }
    }
}

/// How to render a chat.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderOptions {
    /// Ends with the beginning of the model's next message, so that it answers.
    pub add_generation_prompt: bool,
    /// Leaves this field of the last message open, so that the model goes on with it: mostly `content`.
    pub continue_final: Option<String>,
    /// The template of this name, of a model that has several. By default `tool_use` where there are tools and such a
    /// template, else `default`.
    pub template: Option<String>,
    /// What `strftime_now` tells; by default the present moment in UTC.
    pub now: Option<Moment>,
    /// What the rendering may take.
    pub limits: Limits,
}

impl Default for RenderOptions {
    fn default() -> RenderOptions {
        RenderOptions {
            add_generation_prompt: true,
            continue_final: None,
            template: None,
            now: None,
            limits: Limits::default(),
        }
    }
}

/// Names under which a message's reasoning is passed; templates read the first, gpt-oss's the second.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

impl Chat {
    /// A chat of these messages: role and content.
    pub fn new<'a>(messages: impl IntoIterator<Item = (&'a str, &'a str)>) -> Chat {
        let message = |(role, content): (&str, &str)| {
            Data::object([("role", role.into()), ("content", content.into())])
        };
        Chat { messages: messages.into_iter().map(message).collect(), ..Chat::default() }
    }

    /// The messages as Hugging Face hands them to templates: without keys that are null, which many templates would
    /// print, and with reasoning under each name that templates read it by.
    pub(super) fn prepared(&self) -> Result<Vec<Data>, TemplateError> {
        if self.messages.is_empty() {
            return Err(TemplateError::Chat("there are no messages; a chat has at least one".into()));
        }
        let prepare = |(at, message): (usize, &Data)| match message {
            Data::Object(entries) => {
                Ok(prepare(entries.iter().filter(|(_, value)| *value != Data::Null).cloned().collect()))
            }
            _ => Err(TemplateError::Chat(format!(
                "message {at} is no object; a message is an object with `role` and `content`"
            ))),
        };
        self.messages.iter().enumerate().map(prepare).collect()
    }

    /// Brings messages as OpenAI's API has them into the form that Hugging Face's templates read: the arguments of tool
    /// calls, which the API writes as JSON text, become objects, and with `flatten` a content of text parts becomes one
    /// text. Whether a template reads parts, [`ChatTemplate::reads_parts`](super::ChatTemplate::reads_parts) says.
    ///
    /// # Errors
    /// With `flatten`, a part that is no text.
    pub fn into_template_form(mut self, flatten: bool) -> Result<Chat, TemplateError> {
        for message in &mut self.messages {
            if let Some(Data::List(calls)) = message.get_mut("tool_calls") {
                for call in calls {
                    let arguments =
                        call.get_mut("function").and_then(|function| function.get_mut("arguments"));
                    parse_arguments(arguments);
                }
            }
            if let (true, Some(content @ Data::List(_))) = (flatten, message.get_mut("content")) {
                *content = flat(content)?;
            }
        }
        Ok(self)
    }
}

/// Replaces JSON text of an object by the object. What is no such text stays, for the template to show as it is.
fn parse_arguments(arguments: Option<&mut Data>) {
    if let Some(arguments) = arguments
        && let Some(Ok(parsed @ Data::Object(_))) = arguments.as_str().map(serde_json::from_str)
    {
        *arguments = parsed;
    }
}

/// The texts of the parts of a content, one after another.
fn flat(content: &Data) -> Result<Data, TemplateError> {
    let Data::List(parts) = content else { return Ok(content.clone()) };
    let mut text = String::new();
    for part in parts {
        let piece = part.as_str().or_else(|| part.get("text").and_then(Data::as_str));
        let kind = || part.get("type").and_then(Data::as_str).unwrap_or("unknown").to_owned();
        text += piece.ok_or_else(|| {
            TemplateError::Chat(format!(
                "a message has a part of type `{}`, but the model's template reads text only",
                kind()
            ))
        })?;
    }
    Ok(Data::Str(text))
}

fn prepare(mut message: Vec<(String, Data)>) -> Data {
    let find = |key: &str| message.iter().rfind(|(found, _)| found == key).map(|(_, value)| value.clone());
    let reasoning = REASONING.iter().find_map(|key| find(key));
    if let Some(reasoning) = reasoning {
        if find(REASONING[1]).is_none() {
            message.insert(0, (REASONING[1].to_owned(), reasoning.clone()));
        }
        message.push((REASONING[0].to_owned(), reasoning));
    }
    Data::Object(message)
}

/// The mark by which the end of a message that is continued is found again, and what it becomes where the template trims.
const TAG: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// Marks the end of the last message's `field`, and gives back its text.
pub(super) fn mark_final(messages: &mut [Data], field: &str) -> Result<String, TemplateError> {
    let fail = |problem: String| {
        Err(TemplateError::Chat(format!("the last message cannot be continued: {problem}")))
    };
    let Some(last) = messages.last_mut() else { return fail("there is none".into()) };
    let Some(value) = last.get(field).cloned() else { return fail(format!("it has no `{field}`")) };
    let mut fields = vec![field];
    if REASONING.contains(&field) {
        fields = REASONING.into_iter().filter(|name| last.get(name) == Some(&value)).collect();
    }
    let mut unmarked = String::new();
    for field in fields {
        let text = match last.get_mut(field) {
            Some(Data::List(parts)) => parts.iter_mut().rev().find_map(|part| part.get_mut("text")),
            other => other,
        };
        match text {
            Some(Data::Str(text)) => {
                unmarked.clone_from(text);
                text.push_str(TAG);
            }
            _ => return fail(format!("its `{field}` holds no text")),
        }
    }
    Ok(unmarked)
}

/// How many bytes of a rendered text lie before the mark on `message`.
pub(super) fn final_end(text: &str, message: &str) -> Result<usize, TemplateError> {
    let whole = text.contains(message.trim_matches(is_space));
    let Some(at) = text.rfind(TAG.trim_end()).filter(|_| whole) else {
        return Err(TemplateError::Chat(
            "the last message cannot be continued: the model's template does not show it as it is".into(),
        ));
    };
    let kept = text[at..].starts_with(TAG);
    Ok(if kept { at } else { text[..at].trim_end_matches(is_space).len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(json: &str) -> Chat {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn messages_lose_nulls_and_gain_names_of_reasoning() {
        let given = chat(r#"{"messages":[{"role":"a","content":null,"reasoning":"r"}]}"#);
        let expected =
            chat(r#"{"messages":[{"thinking":"r","role":"a","reasoning":"r","reasoning_content":"r"}]}"#);
        assert_eq!(given.prepared().unwrap(), expected.messages);
        for (json, problem) in
            [(r#"{"messages":[]}"#, "no messages"), (r#"{"messages":[{},3]}"#, "message 1 is no object")]
        {
            assert!(chat(json).prepared().unwrap_err().to_string().contains(problem));
        }
    }

    #[test]
    fn openai_messages_become_what_templates_read() {
        let given = chat(
            r#"{"messages":[
                {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
                {"role":"assistant","content":null,"tool_calls":[
                    {"function":{"name":"f","arguments":"{\"x\": 1}"}},
                    {"function":{"name":"g","arguments":"not JSON"}}]}],
              "chat_template_kwargs":{"enable_thinking":false}}"#,
        );
        assert_eq!(given.variables, [("enable_thinking".to_owned(), false.into())]);
        let flat = given.clone().into_template_form(true).unwrap();
        assert_eq!(flat.messages[0].get("content"), Some(&"ab".into()));
        let Some(Data::List(calls)) = flat.messages[1].get("tool_calls") else { panic!("no calls") };
        let arguments = |at: usize| calls[at].get("function").and_then(|f| f.get("arguments")).unwrap();
        assert_eq!(arguments(0), &Data::object([("x", Data::Int(1))]));
        assert_eq!(arguments(1), &"not JSON".into());
        assert_eq!(given.clone().into_template_form(false).unwrap().messages[0], given.messages[0]);
        let image = chat(r#"{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}"#);
        assert!(image.into_template_form(true).unwrap_err().to_string().contains("`image_url`"));
    }
}
