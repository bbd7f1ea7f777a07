//! Any chat template over any chat: the parts of an input, the template and the chat in JSON, end in the byte FF.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memra_fuzz::{bounded_by, parts};
use memra_text::template::{Chat, ChatTemplate, Limits, Moment, RenderOptions, TemplateSpec};

/// What a rendering may take; low, so that inputs that need it all are not what is tried most of the time.
const LIMITS: Limits = Limits { steps: 20_000, steps_per_byte: 8, bytes: 256 << 10, bytes_per_byte: 16 };

fuzz_target!(|input: &[u8]| {
    let [template, chat, _] = parts(input);
    let spec = TemplateSpec {
        templates: vec![("default".into(), String::from_utf8_lossy(template).into_owned())],
        tokens: vec![("bos_token".into(), "<s>".into()), ("eos_token".into(), "</s>".into())],
    };
    // A tree of statements is several times its source.
    let most = (4 << 20) + 1000 * input.len();
    bounded_by(most, || {
        let template = match ChatTemplate::new(spec) {
            Ok(template) => template,
            Err(error) => return drop(error.to_string()),
        };
        let chat = serde_json::from_slice(chat).unwrap_or_else(|_| Chat::new([("user", "Hi <s> {{ x }}")]));
        for continue_final in [None, Some("content".to_owned())] {
            let options = RenderOptions {
                add_generation_prompt: continue_final.is_none(),
                continue_final,
                template: None,
                now: Some(Moment::from_unix(1_700_000_000)),
                limits: LIMITS,
            };
            let rendered = match template.render(&chat, &options) {
                Ok(rendered) => rendered,
                Err(error) => {
                    drop(error.to_string());
                    continue;
                }
            };
            let mut end = 0;
            for range in rendered.template_ranges() {
                assert!(range.start >= end && range.start < range.end, "ranges are in order and apart");
                assert!(rendered.text().get(range.clone()).is_some(), "ranges are on characters");
                end = range.end;
            }
        }
        if let Ok(chat) = chat.into_template_form(true) {
            drop(template.render(&chat, &RenderOptions { limits: LIMITS, ..RenderOptions::default() }));
        }
    });
});
