//! `memra run`: generate text.

mod sampling;

use crate::context::{Context, print_json};
use crate::exit::{Exit, Failure};
use crate::output::{Out, say, stdout};
use crate::{engine, interrupt, models};
use anyhow::Context as _;
use memra_engine::model::{ModelFile, chat_template};
use memra_engine::sampling::TokenLogprobs;
use memra_engine::{Error, Finish, GenerateOptions, Generation, Progress, generate};
use memra_text::template::{Chat, RenderOptions};
use memra_text::{EncodeOptions, Specials, StopStrings};
use sampling::SamplingArgs;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Arguments of `memra run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra run SmolLM2 -p 'The capital of France is' -n 32
  memra run model.gguf -f prompt.txt --temp 0.8 --top-p 0.95 --seed 7
  memra run SmolLM2 --chat -p 'What is a prime?' --system 'Be brief.'

Text goes to stdout, figures to stderr. Ctrl-C ends the generation and still
prints the figures; a second one kills.")]
pub(crate) struct Args {
    /// Model file, or the name of a fetched model
    model: String,

    /// Prompt
    #[arg(short, long, value_name = "TEXT", required_unless_present = "file")]
    prompt: Option<String>,

    /// Read the prompt from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "prompt")]
    file: Option<PathBuf>,

    /// Take the prompt as a message, by the model's chat template, and print the answer
    #[arg(long)]
    chat: bool,

    /// System message of the chat
    #[arg(long, value_name = "TEXT", requires = "chat")]
    system: Option<String>,

    /// Tokens to generate at most
    #[arg(short = 'n', long, value_name = "N", default_value_t = 128)]
    n_predict: usize,

    #[command(flatten)]
    sampling: SamplingArgs,

    /// Take names of control tokens in the prompt, such as <|im_end|>, as text;
    /// a chat's always are
    #[arg(long, conflicts_with = "chat")]
    no_parse_special: bool,

    /// Threads [default: every physical core]
    #[arg(short, long, value_name = "N")]
    pub(super) threads: Option<usize>,

    /// Print text, token ids and figures as JSON at the end, instead of streaming
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let stop = interrupt::watch(interrupt::Hard::Second)?;
    let path = models::resolve(&args.model, cx)?;
    let mut session = engine::session(&path, cx)?;
    let model = session.model().clone();
    let tokenizer = model.file().tokenizer()?;
    let prompt = args.tokens(model.file())?;

    let mut detokenizer = tokenizer.detokenizer(Specials::Skip);
    let mut stops = StopStrings::new(args.sampling.stop.clone());
    let mut sink =
        Sink { streamed: (!args.json).then(stdout), text: String::new(), failed: None, closed: false };
    let mut logprobs = Vec::new();
    let seq = session.new_sequence();
    args.sampling.check(tokenizer.vocab_size())?;
    let mut done = generate(&mut session, seq, &prompt, &args.options()?, &mut |progress| {
        if let Progress::Token(generated) = progress {
            sink.write(stops.push(detokenizer.push(generated.token)));
            logprobs.extend(generated.logprobs);
        }
        if stop.requested() || stops.stopped() || sink.failed.is_some() || sink.closed {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    sink.write(stops.push(detokenizer.finish()));
    sink.write(stops.finish());
    if stops.stopped() {
        done.finish = Finish::StopString;
    }
    let interrupted = stop.requested();
    let text = sink.finish()?;

    let bytes = session.bytes_per_token(prompt.len() + done.tokens.len() / 2)?;
    let figures = Figures::new(&done, bytes, engine::wall_gbps(bytes, cx));
    if args.json {
        let logprobs = args.sampling.logprobs.map(|_| &logprobs[..]);
        let (tokens, finish) = (&done.tokens[..], done.finish);
        print_json(&Report { text, tokens, logprobs, finish, figures: &figures })?;
    }
    say!("{}", figures.line());
    if done.finish == Finish::Context {
        say!("ended: the context of {} tokens is full", session.context());
    }
    Ok(if interrupted { Exit::Interrupted } else { Exit::Pass })
}

impl Args {
    /// Token ids of the prompt.
    fn tokens(&self, file: &ModelFile) -> anyhow::Result<Vec<u32>> {
        let (prompt, tokenizer) = (self.prompt()?, file.tokenizer()?);
        if !self.chat {
            let options = EncodeOptions { add_special: true, parse_special: !self.no_parse_special };
            return Ok(tokenizer.encode(&prompt, options));
        }
        let system = self.system.as_deref().map(|text| ("system", text));
        let chat = Chat::new(system.into_iter().chain([("user", prompt.as_str())]));
        let template = chat_template(file.checkpoint())?;
        let rendered = template.render(&chat, &RenderOptions::default()).map_err(Error::from)?;
        Ok(rendered.encode(tokenizer))
    }

    fn prompt(&self) -> anyhow::Result<String> {
        match &self.file {
            Some(file) => {
                let bytes = std::fs::read(file).with_context(|| format!("prompt file {}", file.display()))?;
                String::from_utf8(bytes)
                    .map_err(|_| Failure::usage(format!("{}: not UTF-8 text", file.display())))
            }
            None => Ok(self.prompt.clone().unwrap_or_default()),
        }
    }

    fn options(&self) -> anyhow::Result<GenerateOptions> {
        Ok(GenerateOptions {
            max_tokens: self.n_predict,
            sampling: self.sampling.sampling()?,
            ignore_eos: self.sampling.ignore_eos,
            stop_tokens: self.sampling.stop_token.clone(),
            logprobs: self.sampling.logprobs,
            ..GenerateOptions::default()
        })
    }
}

/// Where generated text goes: streamed at once, or kept for JSON.
struct Sink {
    streamed: Option<Out>,
    text: String,
    /// The first failed write; it ends the generation.
    failed: Option<io::Error>,
    /// Whether nobody reads any more; that ends it too.
    closed: bool,
}

impl Sink {
    fn write(&mut self, text: &str) {
        match &mut self.streamed {
            Some(out) => {
                let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
                self.failed = self.failed.take().or(written.err());
                self.closed = out.is_closed();
            }
            None => self.text.push_str(text),
        }
    }

    /// Ends the line; gives back the text that was kept.
    fn finish(mut self) -> io::Result<String> {
        if self.streamed.is_some() {
            self.write("\n");
        }
        self.failed.map_or(Ok(self.text), Err)
    }
}

#[derive(serde::Serialize)]
struct Report<'a> {
    text: String,
    tokens: &'a [u32],
    /// One a token, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<&'a [TokenLogprobs]>,
    finish: Finish,
    #[serde(flatten)]
    figures: &'a Figures,
}

/// How fast it was. A rate that was not measured is absent.
#[derive(serde::Serialize)]
struct Figures {
    prompt_tokens: usize,
    generated_tokens: usize,
    ttft_ms: f64,
    prefill_tps: Option<f64>,
    decode_tps: Option<f64>,
    bytes_per_token: u64,
    wall_gbps: Option<f64>,
    wall_percent: Option<f64>,
}

impl Figures {
    fn new(done: &Generation, bytes_per_token: u64, wall_gbps: Option<f64>) -> Figures {
        let stats = &done.stats;
        let decode_tps = Some(stats.decode_rate()).filter(|rate| rate.is_normal());
        let achieved = decode_tps.map(|rate| rate * bytes_per_token as f64 / 1e9);
        Figures {
            prompt_tokens: stats.prompt_tokens,
            generated_tokens: done.tokens.len(),
            ttft_ms: stats.first_token.as_secs_f64() * 1e3,
            prefill_tps: Some(stats.prefill_rate()).filter(|rate| rate.is_normal()),
            decode_tps,
            bytes_per_token,
            wall_gbps,
            wall_percent: achieved.zip(wall_gbps).map(|(achieved, wall)| 100.0 * achieved / wall),
        }
    }

    fn line(&self) -> String {
        let rate =
            |tps: Option<f64>| tps.map_or_else(|| "not timed".to_owned(), |tps| format!("{tps:.1} tok/s"));
        let wall = match (self.wall_percent, self.wall_gbps) {
            (Some(percent), Some(wall)) => format!(", {percent:.0} % of the {wall:.1} GB/s read wall"),
            (_, None) => ", read wall unknown (memra probe)".to_owned(),
            _ => String::new(),
        };
        format!(
            "prompt: {} tokens, {}, first token after {:.0} ms\ndecode: {} tokens, {}{wall}",
            self.prompt_tokens,
            rate(self.prefill_tps),
            self.ttft_ms,
            self.generated_tokens,
            rate(self.decode_tps),
        )
    }
}
