//! The machine that renders a program: its state, and statements.

use super::ast::{Expr, Filter, For, If, Macro, NameId, Program, Stmt, StmtKind, Target};
use super::meter::{Charge, Fault, Meter, Result, invalid};
use super::text::{Text, TextBuilder};
use super::value::{Function, Hint, List, Value};
use super::{ops, show};
use crate::template::Moment;
use std::rc::Rc;

/// Deepest nesting of blocks, calls and expressions while rendering. A level takes some hundred bytes of stack.
const MAX_DEPTH: u32 = 300;

/// How statements ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
}

/// Variables of one scope. Scopes are found by number; one leaves when its block ends, unless a macro needs it.
#[derive(Debug, Default)]
struct Frame {
    parent: usize,
    vars: Vec<(NameId, Value)>,
    kept: bool,
}

/// A loop that is running.
#[derive(Debug)]
pub(super) struct Loop<'t> {
    pub(super) id: u64,
    pub(super) items: List,
    pub(super) index: usize,
    /// How many recursive calls of the loop this one is inside of.
    pub(super) depth: usize,
    pub(super) node: &'t For,
    /// The scope around it.
    pub(super) frame: usize,
    /// What `loop.changed` was last called with.
    pub(super) changed: Option<List>,
}

/// Variables that are set without being assigned, where the program mentions them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Implied {
    /// `loop`
    running: Option<NameId>,
    pub(super) caller: Option<NameId>,
    pub(super) varargs: Option<NameId>,
    pub(super) kwargs: Option<NameId>,
}

impl Implied {
    fn new(program: &Program) -> Implied {
        let id = |name| name_id(program, name);
        Implied { running: id("loop"), caller: id("caller"), varargs: id("varargs"), kwargs: id("kwargs") }
    }
}

/// A name of the program, if it has it.
fn name_id(program: &Program, name: &str) -> Option<NameId> {
    program.names.iter().position(|found| **found == *name).map(|id| NameId(id as u32))
}

/// One rendering.
#[derive(Debug)]
pub(crate) struct Machine<'t> {
    program: &'t Program,
    meter: Rc<Meter>,
    strings: Vec<Text>,
    /// The function of each name that is one's.
    functions: Vec<Option<Function>>,
    frames: Vec<Frame>,
    frame: usize,
    pub(super) macros: Vec<(&'t Macro, usize)>,
    namespaces: Vec<Vec<(Text, Value)>>,
    pub(super) loops: Vec<Loop<'t>>,
    next_loop: u64,
    pub(super) implied: Implied,
    out: Vec<TextBuilder>,
    depth: u32,
    line: u32,
    pub(super) now: Moment,
    /// For what stays until the end.
    held: Charge,
}

impl<'t> Machine<'t> {
    /// A machine about to render `program`.
    pub(crate) fn new(program: &'t Program, meter: &Rc<Meter>, now: Moment) -> Result<Machine<'t>> {
        let strings = program.strings.iter().map(|text| Text::made(meter, text)).collect::<Result<_>>()?;
        let function = |name: &str| {
            Function::ALL.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
        };
        Ok(Machine {
            program,
            meter: Rc::clone(meter),
            strings,
            functions: program.names.iter().map(|name| function(name)).collect(),
            frames: vec![Frame { kept: true, ..Frame::default() }],
            frame: 0,
            macros: Vec::new(),
            namespaces: Vec::new(),
            loops: Vec::new(),
            next_loop: 0,
            implied: Implied::new(program),
            out: Vec::new(),
            depth: 0,
            line: 1,
            now,
            held: meter.hold(0)?,
        })
    }

    /// Sets a variable of the template; one that it never mentions is dropped.
    pub(crate) fn set_global(&mut self, name: &str, value: Value) {
        if let Some(id) = name_id(self.program, name) {
            self.frames[0].vars.retain(|(found, _)| *found != id);
            self.frames[0].vars.push((id, value));
        }
    }

    /// Renders the program.
    pub(crate) fn render(&mut self) -> Result<Text> {
        let program = self.program;
        self.capture(|machine| machine.body(&program.body).map(drop))
    }

    /// The line that is being rendered.
    pub(crate) fn line(&self) -> u32 {
        self.line
    }

    pub(super) fn set_line(&mut self, line: u32) {
        self.line = line;
    }

    pub(super) fn meter(&self) -> &Rc<Meter> {
        &self.meter
    }

    pub(super) fn name(&self, id: NameId) -> &'t str {
        &self.program.names[id.0 as usize]
    }

    pub(super) fn string(&self, id: super::ast::StrId) -> &Text {
        &self.strings[id.0 as usize]
    }

    /// The error of using what is undefined.
    pub(super) fn undefined<T>(&self, hint: &Hint) -> Result<T> {
        invalid(match hint {
            Hint::Name(id) => format!("`{}` is undefined", self.name(*id)),
            Hint::Key(key) => format!("`{}` is undefined: there is no such attribute or item", key.as_str()),
            Hint::Nothing => "a value is undefined".to_owned(),
        })
    }

    /// Goes one level deeper; [`Machine::leave`] comes back.
    pub(super) fn enter(&mut self) -> Result<()> {
        if self.depth == MAX_DEPTH {
            return Err(Fault::Depth);
        }
        self.depth += 1;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// What `run` writes.
    pub(super) fn capture(&mut self, run: impl FnOnce(&mut Self) -> Result<()>) -> Result<Text> {
        let level = self.out.len();
        self.out.push(TextBuilder::new(&self.meter)?);
        let ran = run(self);
        let written = self.out.drain(level..).next();
        ran?;
        written.map_or_else(|| Text::made(&self.meter, ""), |out| Ok(out.finish()))
    }

    /// Writes a value.
    fn write(&mut self, value: &Value) -> Result<()> {
        match self.out.last_mut() {
            Some(out) => show::write(value, out),
            None => Ok(()),
        }
    }

    // Scopes.

    pub(super) fn lookup(&self, name: NameId) -> Result<Value> {
        let (mut at, mut searched) = (self.frame, 0);
        loop {
            let frame = &self.frames[at];
            searched += frame.vars.len();
            if let Some((_, value)) = frame.vars.iter().find(|(found, _)| *found == name) {
                self.meter.steps(searched / 16)?;
                return Ok(value.clone());
            }
            if at == 0 {
                break;
            }
            at = frame.parent;
        }
        self.meter.steps(searched / 16)?;
        let function = self.functions[name.0 as usize];
        Ok(function.map_or(Value::Undefined(Hint::Name(name)), Value::Function))
    }

    pub(super) fn set(&mut self, name: NameId, value: Value) {
        let vars = &mut self.frames[self.frame].vars;
        match vars.iter_mut().find(|(found, _)| *found == name) {
            Some((_, old)) => *old = value,
            None => vars.push((name, value)),
        }
    }

    /// Opens a scope inside of `parent` and gives back the scope to return to.
    fn open(&mut self, parent: usize) -> usize {
        self.frames.push(Frame { parent, ..Frame::default() });
        std::mem::replace(&mut self.frame, self.frames.len() - 1)
    }

    /// Closes the scope, to go on in `outer`.
    fn close(&mut self, outer: usize) -> Result<()> {
        let at = std::mem::replace(&mut self.frame, outer);
        if self.frames[at].kept {
            return Ok(());
        }
        if at + 1 == self.frames.len() {
            self.frames.pop();
            return Ok(());
        }
        self.frames[at].vars = Vec::new();
        self.held.grow(size_of::<Frame>())
    }

    /// Runs something in a scope inside of `parent`.
    pub(super) fn scoped<T>(&mut self, parent: usize, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outer = self.open(parent);
        let result = run(self);
        self.close(outer)?;
        result
    }

    /// A macro as a value. It keeps the scopes that it sees.
    fn define(&mut self, node: &'t Macro) -> Result<Value> {
        let mut at = self.frame;
        while !self.frames[at].kept {
            self.frames[at].kept = true;
            self.held.grow(size_of::<Frame>() + 8 * size_of::<(NameId, Value)>())?;
            at = self.frames[at].parent;
        }
        self.held.grow(size_of::<(&Macro, usize)>())?;
        self.macros.push((node, self.frame));
        Ok(Value::Macro(self.macros.len() - 1))
    }

    // Namespaces.

    pub(super) fn namespace(&mut self, attributes: Vec<(Text, Value)>) -> Result<Value> {
        self.held.grow(size_of::<Vec<(Text, Value)>>() + 4 * size_of::<(Text, Value)>())?;
        self.namespaces.push(Vec::new());
        let id = self.namespaces.len() - 1;
        for (name, value) in attributes {
            self.namespace_set(id, name, value)?;
        }
        Ok(Value::Namespace(id))
    }

    pub(super) fn namespace_get(&self, id: usize, name: &str) -> Option<Value> {
        let found = self.namespaces.get(id)?.iter().find(|(found, _)| found.as_str() == name);
        found.map(|(_, value)| value.clone())
    }

    fn namespace_set(&mut self, id: usize, name: Text, value: Value) -> Result<()> {
        if name.as_str().starts_with('_') {
            return invalid(format!(
                "names of a namespace cannot begin with `_`, as `{}` does",
                name.as_str()
            ));
        }
        let Some(attributes) = self.namespaces.get_mut(id) else { return Ok(()) };
        self.meter.steps(attributes.len() / 8)?;
        match attributes.iter_mut().find(|(found, _)| found.as_str() == name.as_str()) {
            Some((_, old)) => *old = value,
            None => {
                self.held.grow(size_of::<(Text, Value)>())?;
                attributes.push((name, value));
            }
        }
        Ok(())
    }

    // Statements.

    pub(super) fn body(&mut self, body: &'t [Stmt]) -> Result<Flow> {
        self.enter()?;
        let mut flow = Flow::Next;
        for stmt in body {
            self.meter.steps(1)?;
            self.line = stmt.line;
            flow = self.statement(&stmt.kind)?;
            if flow != Flow::Next {
                break;
            }
        }
        self.leave();
        Ok(flow)
    }

    fn statement(&mut self, kind: &'t StmtKind) -> Result<Flow> {
        match kind {
            StmtKind::Text(id) => {
                let text = Value::Str(self.string(*id).clone());
                self.write(&text)?;
            }
            StmtKind::Output(value) => {
                let value = self.eval(value)?;
                self.write(&value)?;
            }
            StmtKind::If(node) => return self.if_block(node),
            StmtKind::For(node) => {
                let items = self.eval(&node.items)?;
                self.for_loop(node, &items, 0, self.frame)?;
            }
            StmtKind::Set(target, value) => {
                let value = self.eval(value)?;
                self.assign(target, value)?;
            }
            StmtKind::SetBlock(target, filters, body) => {
                let value = self.block_text(filters, body)?;
                self.assign(target, value)?;
            }
            StmtKind::FilterBlock(filters, body) => {
                let value = self.block_text(filters, body)?;
                self.write(&value)?;
            }
            StmtKind::With(bindings, body) => return self.with(bindings, body),
            StmtKind::Generation(body) => {
                return self.scoped(self.frame, |machine| machine.body(body));
            }
            StmtKind::Macro(node) => {
                let value = self.define(node)?;
                self.set(node.name, value);
            }
            StmtKind::CallBlock(node, call) => {
                let caller = self.define(node)?;
                let value = self.call(call, Some(caller))?;
                self.write(&value)?;
            }
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn if_block(&mut self, node: &'t If) -> Result<Flow> {
        for (condition, body) in &node.branches {
            if self.eval(condition)?.truthy() {
                return self.body(body);
            }
        }
        self.body(&node.otherwise)
    }

    fn with(&mut self, bindings: &'t [(Target, Expr)], body: &'t [Stmt]) -> Result<Flow> {
        let values = bindings.iter().map(|(_, value)| self.eval(value)).collect::<Result<Vec<_>>>()?;
        self.scoped(self.frame, |machine| {
            for ((target, _), value) in bindings.iter().zip(values) {
                machine.assign(target, value)?;
            }
            machine.body(body)
        })
    }

    /// What a block writes, through filters.
    fn block_text(&mut self, filters: &'t [Filter], body: &'t [Stmt]) -> Result<Value> {
        let text =
            self.capture(|machine| machine.scoped(machine.frame, |machine| machine.body(body)).map(drop))?;
        filters.iter().try_fold(Value::Str(text), |value, filter| self.filter(value, filter))
    }

    fn assign(&mut self, target: &'t Target, value: Value) -> Result<()> {
        match target {
            Target::Name(name) => {
                self.set(*name, value);
                Ok(())
            }
            Target::Attr(name, attribute) => match self.lookup(*name)? {
                Value::Namespace(id) => self.namespace_set(id, self.string(*attribute).clone(), value),
                other => invalid(format!(
                    "attributes can be set on namespaces only, and `{}` is of type {}",
                    self.name(*name),
                    other.type_name()
                )),
            },
            Target::Tuple(targets) => {
                let items = ops::iterate(&value, &self.meter)?;
                let items = items.items();
                if items.len() != targets.len() {
                    return invalid(format!("{} values for {} names", items.len(), targets.len()));
                }
                targets.iter().zip(items).try_for_each(|(target, item)| self.assign(target, item.clone()))
            }
        }
    }

    /// Runs a loop over `items`, in a scope inside of `frame`.
    pub(super) fn for_loop(
        &mut self,
        node: &'t For,
        items: &Value,
        depth: usize,
        frame: usize,
    ) -> Result<()> {
        let mut items = ops::iterate(items, &self.meter)?;
        if let Some(filter) = &node.filter {
            let mut kept = Vec::new();
            for item in items.items() {
                self.meter.steps(1)?;
                let keep = self.scoped(frame, |machine| {
                    machine.assign(&node.target, item.clone())?;
                    Ok(machine.eval(filter)?.truthy())
                })?;
                kept.extend(keep.then(|| item.clone()));
            }
            items = List::new(&self.meter, kept)?;
        }
        if items.items().is_empty() {
            return self.scoped(frame, |machine| machine.body(&node.otherwise).map(drop));
        }
        let id = self.next_loop;
        self.next_loop += 1;
        let level = self.loops.len();
        self.loops.push(Loop { id, items: items.clone(), index: 0, depth, node, frame, changed: None });
        let ran = self.iterations(node, &items, level, frame);
        self.loops.truncate(level);
        ran
    }

    fn iterations(&mut self, node: &'t For, items: &List, level: usize, frame: usize) -> Result<()> {
        let name = self.implied.running;
        for (index, item) in items.items().iter().enumerate() {
            self.meter.steps(1)?;
            let id = match self.loops.get_mut(level) {
                Some(state) => {
                    state.index = index;
                    state.id
                }
                None => 0,
            };
            let flow = self.scoped(frame, |machine| {
                if let Some(name) = name {
                    machine.set(name, Value::Loop(id));
                }
                machine.assign(&node.target, item.clone())?;
                machine.body(&node.body)
            })?;
            if flow == Flow::Break {
                break;
            }
        }
        Ok(())
    }
}
