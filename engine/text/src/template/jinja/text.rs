//! Strings that know where each of their bytes came from.

use super::meter::{Charge, Meter, Result};
use std::ops::Range;
use std::rc::Rc;

/// Who wrote a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The template: its literals, what it computes, and the special tokens it is given. May name control tokens.
    #[default]
    Template,
    /// Whoever wrote the messages, tools, documents and variables. Never names a control token.
    Input,
}

/// A stretch of one origin, as far as `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    end: usize,
    origin: Origin,
}

/// An immutable string, cheap to clone. Its origin follows it through every operation: a slice keeps its part's, a
/// concatenation has both.
#[derive(Clone, Debug)]
pub(crate) struct Text(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    text: String,
    /// Neighbours differ; empty where the text is.
    runs: Vec<Run>,
    charge: Charge,
}

impl Text {
    /// A text of one origin.
    pub(crate) fn new(meter: &Rc<Meter>, text: &str, origin: Origin) -> Result<Text> {
        let mut builder = TextBuilder::new(meter)?;
        builder.push(text, origin)?;
        Ok(builder.finish())
    }

    /// Text that the template made.
    pub(crate) fn made(meter: &Rc<Meter>, text: &str) -> Result<Text> {
        Text::new(meter, text, Origin::Template)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0.text
    }

    pub(crate) fn len(&self) -> usize {
        self.0.text.len()
    }

    /// The meter it is charged to.
    pub(crate) fn meter(&self) -> &Rc<Meter> {
        self.0.charge.meter()
    }

    /// Input, if any of it is: the origin of what is computed from the whole.
    pub(crate) fn origin(&self) -> Origin {
        let input = self.0.runs.iter().any(|run| run.origin == Origin::Input);
        if input { Origin::Input } else { Origin::Template }
    }

    /// The pieces of one origin that lie in `range`, in order.
    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = (&str, Origin)> {
        let runs = &self.0.runs;
        let first = runs.partition_point(|run| run.end <= range.start);
        let mut from = range.start;
        runs[first..].iter().map_while(move |run| {
            let to = run.end.min(range.end);
            let piece = self.0.text.get(from..to).filter(|piece| !piece.is_empty())?;
            from = to;
            Some((piece, run.origin))
        })
    }

    /// A part of it, by bytes; the range lies on character boundaries.
    pub(crate) fn slice(&self, range: Range<usize>) -> Result<Text> {
        if range == (0..self.len()) {
            return Ok(self.clone());
        }
        let mut builder = TextBuilder::new(self.meter())?;
        builder.push_part(self, range)?;
        Ok(builder.finish())
    }

    /// Each piece of one origin changed on its own.
    pub(crate) fn map(&self, change: impl Fn(&str) -> String) -> Result<Text> {
        let mut builder = TextBuilder::new(self.meter())?;
        for (piece, origin) in self.pieces(0..self.len()) {
            builder.push(&change(piece), origin)?;
        }
        Ok(builder.finish())
    }

    /// Ranges of bytes that the template wrote, in order.
    pub(crate) fn template_ranges(&self) -> Vec<Range<usize>> {
        let starts = std::iter::once(0).chain(self.0.runs.iter().map(|run| run.end));
        let template = starts.zip(&self.0.runs).filter(|(_, run)| run.origin == Origin::Template);
        template.map(|(start, run)| start..run.end).collect()
    }
}

/// A text being written.
#[derive(Debug)]
pub(crate) struct TextBuilder {
    text: String,
    runs: Vec<Run>,
    charge: Charge,
}

impl TextBuilder {
    pub(crate) fn new(meter: &Rc<Meter>) -> Result<TextBuilder> {
        let charge = meter.hold(size_of::<Inner>() + size_of::<Run>())?;
        Ok(TextBuilder { text: String::new(), runs: Vec::new(), charge })
    }

    pub(crate) fn meter(&self) -> &Rc<Meter> {
        self.charge.meter()
    }

    /// Appends text of one origin.
    pub(crate) fn push(&mut self, text: &str, origin: Origin) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.charge.meter().bytes(text.len())?;
        self.charge.grow(text.len())?;
        self.text.push_str(text);
        match self.runs.last_mut() {
            Some(run) if run.origin == origin => run.end = self.text.len(),
            _ => {
                self.charge.grow(size_of::<Run>())?;
                self.runs.push(Run { end: self.text.len(), origin });
            }
        }
        Ok(())
    }

    /// Appends what the template makes of its own.
    pub(crate) fn made(&mut self, text: &str) -> Result<()> {
        self.push(text, Origin::Template)
    }

    pub(crate) fn push_text(&mut self, text: &Text) -> Result<()> {
        self.push_part(text, 0..text.len())
    }

    /// Appends a part of a text, by bytes.
    pub(crate) fn push_part(&mut self, text: &Text, range: Range<usize>) -> Result<()> {
        text.pieces(range).try_for_each(|(piece, origin)| self.push(piece, origin))
    }

    /// Appends a text so many times.
    pub(crate) fn repeat(&mut self, text: &Text, times: usize) -> Result<()> {
        if text.len() == 0 {
            return Ok(());
        }
        self.charge.room(text.len().saturating_mul(times))?;
        (0..times).try_for_each(|_| self.meter().steps(1).and_then(|()| self.push_text(text)))
    }

    pub(crate) fn finish(self) -> Text {
        Text(Rc::new(Inner { text: self.text, runs: self.runs, charge: self.charge }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_follow_slices_and_concatenations() {
        let meter = Meter::new(1000, 10_000);
        let input = Text::new(&meter, "user", Origin::Input).unwrap();
        let mut builder = TextBuilder::new(&meter).unwrap();
        builder.made("<|a|>").unwrap();
        builder.push_text(&input).unwrap();
        builder.push("", Origin::Template).unwrap();
        builder.push_part(&input, 1..3).unwrap();
        builder.made("<|b|>").unwrap();
        let text = builder.finish();
        assert_eq!(text.as_str(), "<|a|>userse<|b|>");
        assert_eq!(text.template_ranges(), [0..5, 11..16]);
        let part = text.slice(3..13).unwrap();
        assert_eq!((part.as_str(), part.template_ranges()), ("|>userse<|", vec![0..2, 8..10]));
        assert_eq!(part.slice(2..8).unwrap().template_ranges(), []);
        assert_eq!(part.slice(4..4).unwrap().origin(), Origin::Template);
        let upper = text.map(str::to_uppercase).unwrap();
        assert_eq!((upper.as_str(), upper.template_ranges()), ("<|A|>USERSE<|B|>", vec![0..5, 11..16]));
        assert_eq!((text.origin(), input.origin()), (Origin::Input, Origin::Input));
    }

    #[test]
    fn growth_is_charged() {
        let meter = Meter::new(1_000_000, 10_000);
        meter.begin();
        let x = Text::made(&meter, "x").unwrap();
        let mut builder = TextBuilder::new(&meter).unwrap();
        assert!(builder.repeat(&x, 1_000_000).is_err());
        assert!(builder.text.len() < 10_000);
    }
}
