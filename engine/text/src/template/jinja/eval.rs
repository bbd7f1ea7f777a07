//! Expressions and calls.

use super::access;
use super::args::Args;
use super::ast::{Call, CallArgs, Expr, Filter, Macro, MathOp, Test};
use super::machine::Machine;
use super::meter::{Result, invalid};
use super::text::TextBuilder;
use super::value::{DictBuilder, Hint, List, Value};
use super::{filters, functions, methods, ops, show, tests};

impl<'t> Machine<'t> {
    /// The value of an expression.
    pub(super) fn eval(&mut self, expr: &'t Expr) -> Result<Value> {
        self.meter().steps(1)?;
        Ok(match expr {
            Expr::None => Value::None,
            Expr::Bool(value) => Value::Bool(*value),
            Expr::Int(value) => Value::Int(*value),
            Expr::Float(value) => Value::Float(*value),
            Expr::Str(id) => Value::Str(self.string(*id).clone()),
            Expr::Name(name) => self.lookup(*name)?,
            _ => {
                self.enter()?;
                let value = self.compound(expr)?;
                self.leave();
                value
            }
        })
    }

    fn compound(&mut self, expr: &'t Expr) -> Result<Value> {
        match expr {
            Expr::List(items) => Ok(Value::List(self.list(items)?)),
            Expr::Tuple(items) => Ok(Value::Tuple(self.list(items)?)),
            Expr::Dict(entries) => self.dict(entries),
            Expr::Attr(value, name) => {
                let value = self.eval(value)?;
                self.attribute(&value, &self.string(*name).clone())
            }
            Expr::Item(pair) => {
                let (value, key) = (self.eval(&pair.0)?, self.eval(&pair.1)?);
                self.item(&value, &key)
            }
            Expr::Slice(node) => self.slice(&node.0, &node.1),
            Expr::Call(call) => self.call(call, None),
            Expr::Filter(pair) => {
                let value = self.eval(&pair.0)?;
                self.filter(value, &pair.1)
            }
            Expr::Test(test) => self.test(test),
            Expr::Not(value) => Ok(Value::Bool(!self.eval(value)?.truthy())),
            Expr::Neg(value) => {
                let value = self.eval(value)?;
                self.defined(&value)?;
                ops::negate(&value)
            }
            Expr::Pos(value) => self.eval(value),
            Expr::Math(first, rest) => self.math(first, rest),
            Expr::Concat(operands) => self.concat(operands),
            Expr::Compare(first, rest) => self.compare(first, rest),
            Expr::And(operands) => self.logic(operands, false),
            Expr::Or(operands) => self.logic(operands, true),
            Expr::If(node) => {
                let (value, condition, otherwise) = &**node;
                match (self.eval(condition)?.truthy(), otherwise) {
                    (true, _) => self.eval(value),
                    (false, Some(otherwise)) => self.eval(otherwise),
                    (false, None) => Ok(Value::Undefined(Hint::Nothing)),
                }
            }
            // Leaves, which `eval` has done.
            _ => Ok(Value::None),
        }
    }

    /// Refuses what is undefined.
    fn defined(&self, value: &Value) -> Result<()> {
        match value {
            Value::Undefined(hint) => self.undefined(hint),
            _ => Ok(()),
        }
    }

    fn list(&mut self, items: &'t [Expr]) -> Result<List> {
        let mut list = super::value::ListBuilder::new(self.meter())?;
        for item in items {
            list.push(self.eval(item)?)?;
        }
        list.finish()
    }

    fn dict(&mut self, entries: &'t [(Expr, Expr)]) -> Result<Value> {
        let mut dict = DictBuilder::new(self.meter())?;
        for (key, value) in entries {
            dict.set(self.eval(key)?, self.eval(value)?)?;
        }
        Ok(Value::Dict(dict.finish()?))
    }

    fn slice(&mut self, value: &'t Expr, parts: &'t [Option<Expr>; 3]) -> Result<Value> {
        let value = self.eval(value)?;
        self.defined(&value)?;
        let mut bounds = [Value::None, Value::None, Value::None];
        for (bound, part) in bounds.iter_mut().zip(parts) {
            if let Some(part) = part {
                *bound = self.eval(part)?;
            }
        }
        access::slice(&value, bounds, self.meter())
    }

    fn math(&mut self, first: &'t Expr, rest: &'t [(MathOp, Expr)]) -> Result<Value> {
        let mut value = self.eval(first)?;
        for (op, operand) in rest {
            let operand = self.eval(operand)?;
            self.defined(&value)?;
            self.defined(&operand)?;
            value = ops::math(*op, &value, &operand, self.meter())?;
        }
        Ok(value)
    }

    fn concat(&mut self, operands: &'t [Expr]) -> Result<Value> {
        let mut out = TextBuilder::new(self.meter())?;
        for operand in operands {
            show::write(&self.eval(operand)?, &mut out)?;
        }
        Ok(Value::Str(out.finish()))
    }

    fn compare(&mut self, first: &'t Expr, rest: &'t [(super::ast::CompareOp, Expr)]) -> Result<Value> {
        use super::ast::CompareOp::{Ge, Gt, Le, Lt};
        let mut left = self.eval(first)?;
        for (op, right) in rest {
            let right = self.eval(right)?;
            if matches!(op, Lt | Le | Gt | Ge) {
                self.defined(&left)?;
                self.defined(&right)?;
            }
            if !ops::compare(*op, &left, &right, self.meter())? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    /// `or` gives the first operand that is true, `and` the first that is not, else the last.
    fn logic(&mut self, operands: &'t [Expr], wanted: bool) -> Result<Value> {
        let mut value = Value::None;
        for operand in operands {
            value = self.eval(operand)?;
            if value.truthy() == wanted {
                break;
            }
        }
        Ok(value)
    }

    fn args(&mut self, args: &'t CallArgs) -> Result<Args> {
        let positional = args.positional.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>>>()?;
        let mut named = Vec::with_capacity(args.named.len());
        for (name, value) in &args.named {
            named.push((self.string(*name).clone(), self.eval(value)?));
        }
        let mut all = Args::new(positional, named);
        if let Some(splat) = &args.splat {
            let values = self.eval(splat)?;
            all.positional.extend(ops::iterate(&values, self.meter())?.items().iter().cloned());
        }
        if let Some(splat) = &args.splat_named {
            let Value::Dict(dict) = self.eval(splat)? else { return invalid("`**` needs a dict") };
            for (key, value) in dict.entries() {
                let Value::Str(key) = key else { return invalid("`**` needs a dict with string keys") };
                self.meter().steps(1)?;
                all.named.push((key.clone(), value.clone()));
            }
        }
        Ok(all)
    }

    /// A call, with the body of a `call` block.
    pub(super) fn call(&mut self, call: &'t Call, caller: Option<Value>) -> Result<Value> {
        if let Expr::Attr(object, name) = &call.callee {
            let object = self.eval(object)?;
            let name = self.string(*name).clone();
            if methods::exists(&object, name.as_str()) {
                let args = self.args(&call.args)?;
                return methods::call(&object, name.as_str(), args, self.meter());
            }
            let callee = self.attribute(&object, &name)?;
            let args = self.args(&call.args)?;
            return self.call_value(&callee, args, caller, Some(&object));
        }
        let callee = self.eval(&call.callee)?;
        let args = self.args(&call.args)?;
        self.call_value(&callee, args, caller, None)
    }

    fn call_value(
        &mut self,
        callee: &Value,
        mut args: Args,
        caller: Option<Value>,
        object: Option<&Value>,
    ) -> Result<Value> {
        match callee {
            Value::Macro(id) => self.call_macro(*id, args, caller),
            Value::Function(function) => functions::call(self, *function, args),
            Value::Method(method) => methods::call(&method.0, method.1.as_str(), args, self.meter()),
            Value::Loop(id) => {
                let items = args.need("items")?;
                args.end("loop")?;
                self.call_loop(*id, &items)
            }
            Value::Undefined(Hint::Key(name)) => match object {
                Some(Value::Loop(id)) => self.loop_method(*id, name.as_str(), args),
                Some(object) => {
                    invalid(format!("a {} has no method `{}`", object.type_name(), name.as_str()))
                }
                None => self.undefined(&Hint::Key(name.clone())),
            },
            Value::Undefined(hint) => self.undefined(hint),
            _ => invalid(format!("a value of type {} cannot be called", callee.type_name())),
        }
    }

    fn call_macro(&mut self, id: usize, mut args: Args, caller: Option<Value>) -> Result<Value> {
        let Some(&(node, frame)) = self.macros.get(id) else { return invalid("no such macro") };
        let line = self.line();
        let text = self.capture(|machine| {
            machine.scoped(frame, |machine| {
                machine.bind(node, &mut args, caller)?;
                machine.body(&node.body).map(drop)
            })
        })?;
        self.set_line(line);
        Ok(Value::Str(text))
    }

    /// Sets the parameters of a macro in the scope of its body.
    fn bind(&mut self, node: &'t Macro, args: &mut Args, caller: Option<Value>) -> Result<()> {
        for (name, default) in &node.params {
            let value = match (args.take(self.name(*name)), default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.eval(default)?,
                (None, None) => Value::Undefined(Hint::Name(*name)),
            };
            self.set(*name, value);
        }
        if let Some(name) = self.implied.caller {
            let value = caller.or_else(|| args.take_named("caller"));
            self.set(name, value.unwrap_or(Value::Undefined(Hint::Name(name))));
        }
        if let Some(name) = self.implied.varargs {
            let rest = List::new(self.meter(), args.positional.drain(..))?;
            self.set(name, Value::Tuple(rest));
        }
        if let Some(name) = self.implied.kwargs {
            let mut rest = DictBuilder::new(self.meter())?;
            for (key, value) in args.named.drain(..) {
                rest.set(Value::Str(key), value)?;
            }
            self.set(name, Value::Dict(rest.finish()?));
        }
        args.end(self.name(node.name))
    }

    /// `loop(items)` of a recursive loop.
    fn call_loop(&mut self, id: u64, items: &Value) -> Result<Value> {
        let Some(state) = self.loops.iter().rev().find(|state| state.id == id) else {
            return invalid("`loop` is called after its loop has ended");
        };
        let (node, depth, frame) = (state.node, state.depth + 1, state.frame);
        if !node.recursive {
            return invalid("`loop` is called, but the loop is not marked `recursive`");
        }
        let text = self.capture(|machine| machine.for_loop(node, items, depth, frame))?;
        Ok(Value::Str(text))
    }

    /// `loop.cycle(…)` and `loop.changed(…)`.
    fn loop_method(&mut self, id: u64, name: &str, args: Args) -> Result<Value> {
        let values = args.positional;
        let Some(at) = self.loops.iter().rposition(|state| state.id == id) else {
            return invalid("`loop` is used after its loop has ended");
        };
        match name {
            "cycle" if values.is_empty() => invalid("`loop.cycle` needs values to cycle through"),
            "cycle" => {
                let index = self.loops[at].index % values.len();
                Ok(values.into_iter().nth(index).unwrap_or(Value::None))
            }
            "changed" => {
                let values = List::new(self.meter(), values)?;
                let new = Value::Tuple(values.clone());
                let same = match self.loops[at].changed.clone() {
                    Some(old) => Value::Tuple(old).equals(&new, self.meter())?,
                    None => false,
                };
                self.loops[at].changed = Some(values);
                Ok(Value::Bool(!same))
            }
            _ => invalid(format!("`loop` has no method `{name}`")),
        }
    }

    /// `loop.name`
    pub(super) fn loop_attribute(&self, id: u64, name: &str) -> Result<Option<Value>> {
        let Some(state) = self.loops.iter().rev().find(|state| state.id == id) else {
            return invalid("`loop` is used after its loop has ended");
        };
        let (items, index) = (state.items.items(), state.index);
        let count = |n: usize| Some(Value::Int(n as i128));
        let neighbour = |at: Option<usize>| {
            at.and_then(|at| items.get(at)).cloned().or(Some(Value::Undefined(Hint::Nothing)))
        };
        Ok(match name {
            "index" => count(index + 1),
            "index0" => count(index),
            "revindex" => count(items.len() - index),
            "revindex0" => count(items.len() - index - 1),
            "first" => Some(Value::Bool(index == 0)),
            "last" => Some(Value::Bool(index + 1 == items.len())),
            "length" => count(items.len()),
            "depth" => count(state.depth + 1),
            "depth0" => count(state.depth),
            "previtem" => neighbour(index.checked_sub(1)),
            "nextitem" => neighbour(index.checked_add(1)),
            _ => None,
        })
    }

    /// Applies a filter.
    pub(super) fn filter(&mut self, value: Value, filter: &'t Filter) -> Result<Value> {
        let args = self.args(&filter.args)?;
        filters::apply(self, &filter.name, value, args)
    }

    fn test(&mut self, test: &'t Test) -> Result<Value> {
        let value = self.eval(&test.value)?;
        let args = self.args(&test.args)?;
        let passed = tests::check(&test.name, &value, args, self.meter())?;
        Ok(Value::Bool(passed != test.negated))
    }
}
