//! Values of a rendering: Python's, as far as templates see them.
//!
//! They are immutable, as Hugging Face's sandbox makes them, but for namespaces and loops, which live in the machine and
//! are values by number: so no value can hold itself, and all memory is given back.

use super::ast::NameId;
use super::meter::{Charge, Fault, Meter, Result, invalid};
use super::text::Text;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Deepest nesting of lists and dicts. It bounds every recursion over values.
const MAX_DEPTH: u32 = 200;

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Undefined(Hint),
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Text),
    List(List),
    Tuple(List),
    Dict(Dict),
    /// A generator: yields what it holds once.
    Iter(Rc<Generator>),
    Namespace(usize),
    Macro(usize),
    /// The variable `loop`, by a number that no other loop has.
    Loop(u64),
    Function(Function),
    /// A method of a value, not called yet.
    Method(Rc<(Value, Text)>),
}

/// What was looked for where a value is undefined.
#[derive(Clone, Debug)]
pub(crate) enum Hint {
    /// A variable.
    Name(NameId),
    /// An attribute, item or argument.
    Key(Text),
    /// The branch that an `if` without `else` does not have, or the first item of nothing.
    Nothing,
}

/// Functions that every template has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Range,
    Dict,
    Namespace,
    RaiseException,
    StrftimeNow,
}

impl Function {
    pub(crate) const ALL: [(&'static str, Function); 5] = [
        ("range", Function::Range),
        ("dict", Function::Dict),
        ("namespace", Function::Namespace),
        ("raise_exception", Function::RaiseException),
        ("strftime_now", Function::StrftimeNow),
    ];
}

/// A list or tuple, or a stretch of one.
#[derive(Clone, Debug)]
pub(crate) struct List {
    all: Rc<Items>,
    from: usize,
    to: usize,
}

#[derive(Debug)]
struct Items {
    items: Vec<Value>,
    depth: u32,
    _charge: Charge,
}

impl List {
    pub(crate) fn new(meter: &Rc<Meter>, items: impl IntoIterator<Item = Value>) -> Result<List> {
        let mut builder = ListBuilder::new(meter)?;
        items.into_iter().try_for_each(|item| builder.push(item))?;
        builder.finish()
    }

    pub(crate) fn items(&self) -> &[Value] {
        &self.all.items[self.from..self.to]
    }

    /// `count` items from one on; they are there.
    pub(crate) fn stretch(&self, from: usize, count: usize) -> List {
        let from = (self.from + from).min(self.to);
        List { all: Rc::clone(&self.all), from, to: from.saturating_add(count).min(self.to) }
    }
}

/// A list being filled.
#[derive(Debug)]
pub(crate) struct ListBuilder {
    items: Vec<Value>,
    depth: u32,
    charge: Charge,
}

impl ListBuilder {
    pub(crate) fn new(meter: &Rc<Meter>) -> Result<ListBuilder> {
        Ok(ListBuilder { items: Vec::new(), depth: 0, charge: meter.hold(size_of::<Items>())? })
    }

    pub(crate) fn meter(&self) -> &Rc<Meter> {
        self.charge.meter()
    }

    /// Fails if so many items more are not allowed.
    pub(crate) fn room(&self, items: usize) -> Result<()> {
        self.charge.room(items.saturating_mul(size_of::<Value>()))
    }

    pub(crate) fn push(&mut self, item: Value) -> Result<()> {
        self.charge.meter().steps(1)?;
        self.charge.grow(size_of::<Value>())?;
        self.depth = self.depth.max(item.depth());
        self.items.push(item);
        Ok(())
    }

    /// Copies items, which costs less than making them.
    pub(crate) fn extend(&mut self, items: &[Value]) -> Result<()> {
        self.charge.meter().steps(items.len() / 8)?;
        self.charge.grow(size_of_val(items))?;
        self.depth = items.iter().map(Value::depth).fold(self.depth, u32::max);
        self.items.extend_from_slice(items);
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<List> {
        let ListBuilder { items, depth, charge } = self;
        let to = items.len();
        Ok(List { all: Rc::new(Items { items, depth: deeper(depth)?, _charge: charge }), from: 0, to })
    }

    /// What was pushed, as a generator.
    pub(crate) fn generator(self) -> Result<Value> {
        let ListBuilder { items, depth, charge } = self;
        let items = RefCell::new(items.into_iter());
        Ok(Value::Iter(Rc::new(Generator { items, depth: deeper(depth)?, _charge: charge })))
    }
}

/// Values that are yielded once.
#[derive(Debug)]
pub(crate) struct Generator {
    items: RefCell<std::vec::IntoIter<Value>>,
    depth: u32,
    _charge: Charge,
}

impl Generator {
    /// The next value.
    pub(crate) fn next(&self) -> Option<Value> {
        self.items.borrow_mut().next()
    }
}

fn deeper(depth: u32) -> Result<u32> {
    if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(Fault::Depth) }
}

/// A dict in order of insertion.
#[derive(Clone, Debug)]
pub(crate) struct Dict(Rc<Entries>);

#[derive(Debug)]
struct Entries {
    entries: Vec<(Value, Value)>,
    /// Where string keys are, in dicts of more than a few.
    index: HashMap<Rc<str>, usize>,
    depth: u32,
    charge: Charge,
}

/// Entries up to which keys are searched one by one.
const SMALL: usize = 8;

impl Dict {
    pub(crate) fn entries(&self) -> &[(Value, Value)] {
        &self.0.entries
    }

    pub(crate) fn get_str(&self, key: &str) -> Option<&Value> {
        self.0.find_str(key).map(|at| &self.0.entries[at].1)
    }

    /// The value of any key.
    ///
    /// # Errors
    /// A key that cannot be one: a list or a dict.
    pub(crate) fn get(&self, key: &Value) -> Result<Option<&Value>> {
        Ok(self.0.find(key)?.map(|at| &self.0.entries[at].1))
    }
}

impl Entries {
    fn find_str(&self, key: &str) -> Option<usize> {
        if self.entries.len() > SMALL {
            return self.index.get(key).copied();
        }
        self.entries.iter().position(|(found, _)| found.as_str() == Some(key))
    }

    fn find(&self, key: &Value) -> Result<Option<usize>> {
        match key {
            Value::Str(text) => Ok(self.find_str(text.as_str())),
            Value::List(_) | Value::Dict(_) => invalid(format!("a {} cannot be a key", key.type_name())),
            _ => {
                let meter = self.charge.meter();
                meter.steps(self.entries.len())?;
                for (at, (found, _)) in self.entries.iter().enumerate() {
                    if found.equals(key, meter)? {
                        return Ok(Some(at));
                    }
                }
                Ok(None)
            }
        }
    }
}

/// A dict being filled.
#[derive(Debug)]
pub(crate) struct DictBuilder(Entries);

impl DictBuilder {
    pub(crate) fn new(meter: &Rc<Meter>) -> Result<DictBuilder> {
        let charge = meter.hold(size_of::<Entries>())?;
        Ok(DictBuilder(Entries { entries: Vec::new(), index: HashMap::new(), depth: 0, charge }))
    }

    /// Sets a key; one that is there keeps its place.
    pub(crate) fn set(&mut self, key: Value, value: Value) -> Result<()> {
        let dict = &mut self.0;
        dict.charge.meter().steps(1)?;
        dict.depth = dict.depth.max(value.depth()).max(key.depth());
        if let Some(at) = dict.find(&key)? {
            dict.entries[at].1 = value;
            return Ok(());
        }
        dict.charge.grow(2 * size_of::<Value>())?;
        dict.entries.push((key, value));
        // The first time that the index is needed, all that are there go in.
        let from = match dict.entries.len() - 1 {
            SMALL => 0,
            last => last,
        };
        if dict.entries.len() > SMALL {
            for (at, (key, _)) in dict.entries.iter().enumerate().skip(from) {
                if let Some(key) = key.as_str() {
                    dict.charge.grow(key.len() + 4 * size_of::<usize>())?;
                    dict.index.insert(key.into(), at);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Dict> {
        self.0.depth = deeper(self.0.depth)?;
        Ok(Dict(Rc::new(self.0)))
    }
}

impl Value {
    /// Text that the template made.
    pub(crate) fn made(meter: &Rc<Meter>, text: &str) -> Result<Value> {
        Ok(Value::Str(Text::made(meter, text)?))
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text.as_str()),
            _ => None,
        }
    }

    fn depth(&self) -> u32 {
        match self {
            Value::List(list) | Value::Tuple(list) => list.all.depth,
            Value::Dict(dict) => dict.0.depth,
            Value::Method(method) => method.0.depth() + 1,
            Value::Iter(generator) => generator.depth,
            _ => 0,
        }
    }

    /// Python's name of the type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Undefined(_) => "Undefined",
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::Dict(_) => "dict",
            Value::Iter(_) => "generator",
            Value::Namespace(_) => "Namespace",
            Value::Macro(_) => "Macro",
            Value::Loop(_) => "LoopContext",
            Value::Function(_) => "function",
            Value::Method(_) => "method",
        }
    }

    /// Python's `bool(…)`.
    pub(crate) fn truthy(&self) -> bool {
        match self {
            Value::Undefined(_) | Value::None => false,
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Str(text) => text.len() > 0,
            Value::List(list) | Value::Tuple(list) => !list.items().is_empty(),
            Value::Dict(dict) => !dict.entries().is_empty(),
            _ => true,
        }
    }

    /// The value as a number: bools are 0 and 1.
    pub(crate) fn number(&self) -> Option<Number> {
        match self {
            Value::Bool(value) => Some(Number::Int(i128::from(*value))),
            Value::Int(value) => Some(Number::Int(*value)),
            Value::Float(value) => Some(Number::Float(*value)),
            _ => None,
        }
    }

    /// Python's `==`.
    pub(crate) fn equals(&self, other: &Value, meter: &Meter) -> Result<bool> {
        meter.steps(1)?;
        if let (Some(a), Some(b)) = (self.number(), other.number()) {
            return Ok(a.compare(b) == Some(std::cmp::Ordering::Equal));
        }
        Ok(match (self, other) {
            (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => true,
            (Value::Str(a), Value::Str(b)) => {
                a.len() == b.len() && meter.bytes(a.len()).map(|()| a.as_str() == b.as_str())?
            }
            (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
                let (a, b) = (a.items(), b.items());
                let mut equal = a.len() == b.len();
                for (a, b) in a.iter().zip(b) {
                    equal = equal && a.equals(b, meter)?;
                }
                equal
            }
            (Value::Dict(a), Value::Dict(b)) => {
                let mut equal = a.entries().len() == b.entries().len();
                for (key, value) in a.entries() {
                    equal = equal && b.get(key)?.map_or(Ok(false), |other| value.equals(other, meter))?;
                }
                equal
            }
            (Value::Namespace(a), Value::Namespace(b)) | (Value::Macro(a), Value::Macro(b)) => a == b,
            (Value::Loop(a), Value::Loop(b)) => a == b,
            (Value::Function(a), Value::Function(b)) => a == b,
            (Value::Iter(a), Value::Iter(b)) => Rc::ptr_eq(a, b),
            _ => false,
        })
    }
}

/// A number as arithmetic sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub(crate) fn float(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    /// Order of two numbers; none with NaN.
    pub(crate) fn compare(self, other: Number) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
            (a, b) => a.float().partial_cmp(&b.float()),
        }
    }

    pub(crate) fn value(self) -> Value {
        match self {
            Number::Int(value) => Value::Int(value),
            Number::Float(value) => Value::Float(value),
        }
    }
}
