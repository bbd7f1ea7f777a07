//! The performance board: JSONL records through polars to SVG, PNG and Markdown
