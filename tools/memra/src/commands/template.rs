//! `memra template`: a chat as the model reads it.

use crate::context::{Context, print_json};
use crate::exit::{Exit, Failure};
use crate::models;
use crate::output::stdout;
use anyhow::Context as _;
use memra_engine::model::chat_template;
use memra_engine::{Error, tokenizer};
use memra_formats::Checkpoint;
use memra_text::template::{Chat, ChatTemplate, Data, RenderOptions, Rendered};
use serde::Deserialize;
use std::io::{Read, Write};
use std::path::Path;

/// Arguments of `memra template`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra template SmolLM2 messages.json
  echo '[{\"role\":\"user\",\"content\":\"Hi\"}]' | memra template SmolLM2 - --ids
  memra template model.gguf chat.json --tools tools.json --var enable_thinking=false

The text is the one that Hugging Face's transformers render, printed as it is.
Ids are those that `memra run --chat` uses: names of control tokens that stand
in messages, tools, documents or variables are encoded as text.")]
pub(crate) struct Args {
    /// Model file or folder, or the name of a fetched model
    model: String,

    /// JSON file of messages, or of an object with `messages` and `tools`; - for stdin
    #[arg(value_name = "MESSAGES.json")]
    messages: String,

    /// JSON file of a list of tools
    #[arg(long, value_name = "FILE")]
    tools: Option<String>,

    /// Set a variable of the template to a JSON value; may be repeated
    #[arg(long, value_name = "KEY=JSON")]
    var: Vec<String>,

    /// Template of this name, of a model that has several
    #[arg(long, value_name = "NAME")]
    template: Option<String>,

    /// End with the last message, not with the beginning of an answer
    #[arg(long)]
    no_generation_prompt: bool,

    /// Leave the last message open, to be continued
    #[arg(long, conflicts_with = "no_generation_prompt")]
    continue_final: bool,

    /// Read messages as OpenAI's API has them: arguments of calls as JSON text, contents in parts
    #[arg(long)]
    openai: bool,

    /// Print token ids instead of text
    #[arg(long)]
    ids: bool,

    /// Print JSON: the text, which bytes of it are the template's, and the ids if asked for
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Report<'a> {
    text: &'a str,
    /// Beginning and end of each range.
    template_ranges: Vec<[usize; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ids: Option<&'a [u32]>,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let path = models::resolve(&args.model, cx)?;
    let checkpoint =
        Checkpoint::open(&path).map_err(Error::from).with_context(|| path.display().to_string())?;
    let template = chat_template(&checkpoint).with_context(|| path.display().to_string())?;
    let rendered = args.render(&template)?;
    let ids = args.ids.then(|| encode(&path, &rendered)).transpose()?;
    if args.json {
        let template_ranges =
            rendered.template_ranges().iter().map(|range| [range.start, range.end]).collect();
        print_json(&Report { text: rendered.text(), template_ranges, ids: ids.as_deref() })?;
        return Ok(Exit::Pass);
    }
    let mut out = stdout();
    match ids {
        Some(ids) => writeln!(out, "{}", ids.iter().map(u32::to_string).collect::<Vec<_>>().join(","))?,
        None => out.write_all(rendered.text().as_bytes())?,
    }
    out.flush()?;
    Ok(Exit::Pass)
}

fn encode(path: &Path, rendered: &Rendered) -> anyhow::Result<Vec<u32>> {
    let tokenizer = tokenizer::open(path).with_context(|| path.display().to_string())?;
    Ok(rendered.encode(&tokenizer))
}

impl Args {
    fn render(&self, template: &ChatTemplate) -> anyhow::Result<Rendered> {
        let mut chat = self.chat()?;
        if self.openai {
            chat = chat.into_template_form(!template.reads_parts()).map_err(Error::from)?;
        }
        let options = RenderOptions {
            add_generation_prompt: !self.no_generation_prompt && !self.continue_final,
            continue_final: self.continue_final.then(|| "content".to_owned()),
            template: self.template.clone(),
            ..RenderOptions::default()
        };
        Ok(template.render(&chat, &options).map_err(Error::from)?)
    }

    fn chat(&self) -> anyhow::Result<Chat> {
        let text = read(&self.messages)?;
        let mut chat = if text.trim_start().starts_with('[') {
            Chat { messages: parse(&self.messages, &text)?, ..Chat::default() }
        } else {
            parse(&self.messages, &text)?
        };
        if let Some(tools) = &self.tools {
            chat.tools = Some(parse(tools, &read(tools)?)?);
        }
        for setting in &self.var {
            let Some((key, value)) = setting.split_once('=') else {
                return Err(Failure::usage(format!("--var {setting}: a variable is set as KEY=JSON")));
            };
            let value: Data = serde_json::from_str(value).map_err(|error| {
                Failure::usage(format!(
                    "--var {setting}: not JSON ({error}); a text needs quotes: '{key}=\"…\"'"
                ))
            })?;
            chat.variables.retain(|(found, _)| found != key);
            chat.variables.push((key.to_owned(), value));
        }
        Ok(chat)
    }
}

/// The text of a file, or of stdin.
fn read(file: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    if file == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes)?;
    } else {
        bytes = std::fs::read(file).with_context(|| file.to_owned())?;
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{file}: not UTF-8 text")))
}

fn parse<'a, T: Deserialize<'a>>(file: &str, text: &'a str) -> anyhow::Result<T> {
    serde_json::from_str(text).map_err(|error| {
        Failure::usage(format!("{file}: {error}; a list of messages is needed, or an object with `messages`"))
    })
}
