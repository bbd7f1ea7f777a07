#!/usr/bin/env python3
"""Grades engine/text/tests/fixtures/templates.json with Hugging Face: renders every chat by every template, and every
snippet, and writes what comes out, or which error.

pip install transformers==5.24.0 jinja2==3.1.6, then: template_fixtures.py
The chats are made up, and so are the templates (fixtures/templates/*.jinja), with the constructs of well-known models; but
smollm2.jinja is that of SmolLM2-135M-Instruct (Apache-2.0).
"""

import datetime
import json
import pathlib
import sys

import jinja2
import tokenizers
import transformers
from transformers.utils import chat_template_utils

from template_snippets import SNIPPETS, VARIABLES

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "engine" / "text" / "tests" / "fixtures"
NOW = datetime.datetime(2026, 2, 3, 4, 5, 6)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def user(content):
    return {"role": "user", "content": content}


def model(content, **more):
    return {"role": "assistant", "content": content, **more}


def system(content):
    return {"role": "system", "content": content}


def call(name, arguments, id="abcdef123", **more):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def tool(content, **more):
    return {"role": "tool", "content": content, "tool_call_id": "abcdef123", **more}


WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": 'The weather <today> & tomorrow in "a" city\u2019s centre',
        "parameters": {
            "type": "object",
            "properties": {
                "zone": {"type": "string", "description": "City", "enum": ["é", "b"], "default": "b"},
                "days": {"type": "integer", "default": 3, "nullable": True},
                "at": {"type": ["number", "null"]},
                "parts": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"x": {"type": "number"}, "y": {}}, "required": ["y"]},
                },
                "any": {"type": "array"},
                "which": {
                    "oneOf": [
                        {"type": "boolean", "description": "yes"},
                        {"type": "array", "items": {"type": "integer"}},
                    ]
                },
            },
            "required": ["zone"],
        },
    },
}
CLOCK = {
    "type": "function",
    "function": {"name": "clock", "description": "The time", "parameters": {"type": "object", "properties": {}}},
}
TOOLS = [WEATHER, CLOCK]
ARGUMENTS = {"zone": "Zürich <b>", "days": 2, "f": 1.0, "deep": {"a": [1, None, True, 'x\n"y"']}}

CHATS = {
    "one": {"messages": [user("Hi")]},
    "system": {"messages": [system("  Rules. \n"), user(" Hi \n")]},
    "turns": {
        "messages": [system("Be short."), user("1+1?"), model("2"), user("And\n\n2+2?"), model(" 4 \n"), user("ok?")]
    },
    "answered": {"messages": [user("1+1?"), model("2")]},
    "unicode": {"messages": [user("日本 é\u0301 \U0001f600 <|im_end|> {{ x }} {% y %}\t\r\n.")]},
    "empty": {"messages": [user("")]},
    "two questions": {"messages": [user("a"), user("b")]},
    "odd role": {"messages": [user("a"), {"role": "critic", "content": "bad"}]},
    "no messages": {"messages": []},
    "no content": {"messages": [user("a"), {"role": "assistant"}]},
    "null content": {"messages": [user("a"), model(None)]},
    "number": {"messages": [user(5)]},
    "parts": {"messages": [user([{"type": "text", "text": " a "}, {"type": "image"}, {"type": "text", "text": "b"}])]},
    "system parts": {"messages": [system([{"type": "text", "text": "Rules"}]), user([{"type": "text", "text": "a"}])]},
    "tools": {"messages": [system("S"), user("Weather?")], "tools": TOOLS},
    "tools, no system": {"messages": [user("Weather?")], "tools": [CLOCK]},
    "no tools": {"messages": [user("Weather?")], "tools": []},
    "call": {
        "messages": [
            user("Weather?"),
            model(None, tool_calls=[call("weather", ARGUMENTS)]),
            tool('{"t": 20}'),
            model("20 degrees"),
            user("Thanks"),
        ],
        "tools": TOOLS,
    },
    "call by text": {
        "messages": [user("W?"), model("", tool_calls=[call("weather", json.dumps(ARGUMENTS))]), tool("rain")],
        "tools": TOOLS,
    },
    "two calls": {
        "messages": [
            user("W?"),
            model("Looking", tool_calls=[call("weather", {}), call("clock", {"x": 1}, id="short")]),
            tool("a"),
            tool("b"),
        ]
    },
    "bare call": {
        "messages": [
            user("W?"),
            model(None, tool_calls=[{"name": "clock", "arguments": {"a": "b"}}]),
            tool([{"output": "t"}, "u"]),
        ]
    },
    "result object": {
        "messages": [
            user("W?"),
            model(None, tool_calls=[call("clock", {})]),
            tool({"content": {"a": 1.5}, "b": [True]}),
        ]
    },
    "thinking": {
        "messages": [
            user("a"),
            model("b", reasoning_content="\nbecause\n"),
            user("c"),
            model("d", reasoning_content="so"),
        ]
    },
    "thinking inside": {
        "messages": [user("a"), model("<think>\nwhy\n</think>\n\nb"), user("c"), model("<think>\nhm\n</think>\n\nd")]
    },
    "old thinking": {"messages": [user("a"), model("b", thinking="t"), user("c")]},
    "documents": {"messages": [user("q")], "documents": [{"title": "A", "text": "one\n\ntwo"}, {"text": "three\n"}]},
    "documents, tools": {"messages": [user("q"), model("a"), user("r")], "documents": [], "tools": [CLOCK]},
    "no thinking": {"messages": [user("a")], "chat_template_kwargs": {"enable_thinking": False}},
    "settings": {
        "messages": [user("a")],
        "tools": [CLOCK],
        "chat_template_kwargs": {
            "tools_in_user_message": False,
            "date_string": "today",
            "reasoning_effort": "high",
            "bos_token": "<mine>",
            "controls": {"length": "long", "n": [1, 2]},
        },
    },
    "tool text": {
        "messages": [
            {"role": "system", "content": "s", "tools": "[{}]"},
            user("<tool_response>x</tool_response>"),
            model("y"),
        ]
    },
}

# Options of a rendering, and the chats that they are for (all where there is none).
OPTIONS = [
    ({"add_generation_prompt": True}, None),
    ({"add_generation_prompt": False}, ["answered", "turns", "call", "thinking", "thinking inside"]),
    (
        {"add_generation_prompt": False, "continue_final": "content"},
        ["answered", "turns", "one", "system", "parts", "no content", "thinking inside"],
    ),
    ({"add_generation_prompt": False, "continue_final": "reasoning_content"}, ["thinking", "one"]),
    ({"add_generation_prompt": True, "continue_final": "content"}, ["answered"]),
]


def outcome(render):
    try:
        return {"text": render()}
    except Exception as error:
        # What `raise_exception` raises is this class itself; all others are mistakes.
        if type(error) is jinja2.exceptions.TemplateError:
            return {"refused": str(error.message)}
        return {"error": f"{type(error).__name__}: {error}".split("\n")[0][:48]}


def render(tokenizer, template, chat, options):
    return outcome(
        lambda: tokenizer.apply_chat_template(
            chat["messages"],
            tools=chat.get("tools"),
            documents=chat.get("documents"),
            chat_template=template,
            add_generation_prompt=options.get("add_generation_prompt", False),
            continue_final_message=options.get("continue_final", False),
            tokenize=False,
            **chat.get("chat_template_kwargs", {}),
        )
    )


def main():
    transformers.logging.set_verbosity_error()
    chat_template_utils.datetime = Clock
    bare = tokenizers.Tokenizer(tokenizers.models.WordLevel({"x": 0}, unk_token="x"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bare, bos_token="<s>", eos_token="</s>")
    cases = []
    for path in sorted((FIXTURES / "templates").glob("*.jinja")):
        for options, chats in OPTIONS:
            for name in chats or CHATS:
                result = render(tokenizer, path.read_text(), CHATS[name], options)
                cases.append({"template": path.stem, "chat": name, **options, **result})
    snippets = []
    for source, variables in SNIPPETS:
        chat = {"messages": [user("x")], "chat_template_kwargs": VARIABLES[variables]}
        snippets.append({"source": source, "variables": variables, **render(tokenizer, source, chat, {})})
    dump = lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    lines = lambda rows: ",\n".join(dump(row) for row in rows)
    chats = ",\n".join(f"{dump(name)}:{dump(chat)}" for name, chat in CHATS.items())
    text = f'{{"now":{int((NOW - datetime.datetime(1970, 1, 1)).total_seconds())},\n"variables":{dump(VARIABLES)},\n"chats":{{\n{chats}\n}},\n"cases":[\n{lines(cases)}\n],\n"snippets":[\n{lines(snippets)}\n]}}\n'
    (FIXTURES / "templates.json").write_text(text)
    errors = sum("error" in row for row in cases + snippets)
    print(f"{len(cases)} cases, {len(snippets)} snippets, {errors} errors, {len(text.encode())} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
