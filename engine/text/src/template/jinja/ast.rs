//! A template as the parser leaves it. Names and strings stand in tables, so that a rendering prepares them once.

/// A parsed template.
#[derive(Debug)]
pub(crate) struct Program {
    /// Names of variables.
    pub(crate) names: Vec<Box<str>>,
    /// Text outside of tags, string literals, and names of attributes and keyword arguments.
    pub(crate) strings: Vec<Box<str>>,
    pub(crate) body: Vec<Stmt>,
}

/// Index into [`Program::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameId(pub(crate) u32);

/// Index into [`Program::strings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StrId(pub(crate) u32);

#[derive(Debug)]
pub(crate) struct Stmt {
    pub(crate) line: u32,
    pub(crate) kind: StmtKind,
}

#[derive(Debug)]
pub(crate) enum StmtKind {
    /// Text outside of tags.
    Text(StrId),
    /// `{{ … }}`
    Output(Expr),
    If(If),
    For(Box<For>),
    /// `{% set a = … %}`
    Set(Target, Expr),
    /// `{% set a | filter %}…{% endset %}`
    SetBlock(Target, Vec<Filter>, Vec<Stmt>),
    /// `{% with a = … %}…{% endwith %}`
    With(Vec<(Target, Expr)>, Vec<Stmt>),
    Macro(Box<Macro>),
    /// `{% call(…) f() %}…{% endcall %}`: the body as a macro, and the call it is handed to.
    CallBlock(Box<Macro>, Box<Call>),
    /// `{% filter … %}…{% endfilter %}`
    FilterBlock(Vec<Filter>, Vec<Stmt>),
    /// `{% generation %}…{% endgeneration %}`, by which trainers find the model's own turns.
    Generation(Vec<Stmt>),
    Break,
    Continue,
}

#[derive(Debug)]
pub(crate) struct If {
    /// `if` and every `elif`.
    pub(crate) branches: Vec<(Expr, Vec<Stmt>)>,
    pub(crate) otherwise: Vec<Stmt>,
}

#[derive(Debug)]
pub(crate) struct For {
    pub(crate) target: Target,
    pub(crate) items: Expr,
    pub(crate) filter: Option<Expr>,
    pub(crate) body: Vec<Stmt>,
    pub(crate) otherwise: Vec<Stmt>,
    pub(crate) recursive: bool,
}

#[derive(Debug)]
pub(crate) struct Macro {
    pub(crate) name: NameId,
    pub(crate) params: Vec<(NameId, Option<Expr>)>,
    pub(crate) body: Vec<Stmt>,
}

/// What is assigned to.
#[derive(Debug)]
pub(crate) enum Target {
    Name(NameId),
    /// An attribute of a namespace.
    Attr(NameId, StrId),
    Tuple(Vec<Target>),
}

#[derive(Debug)]
pub(crate) enum Expr {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(StrId),
    Name(NameId),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    /// `a.b`
    Attr(Box<Expr>, StrId),
    /// `a[b]`
    Item(Box<(Expr, Expr)>),
    /// `a[b:c:d]`
    Slice(Box<(Expr, [Option<Expr>; 3])>),
    Call(Box<Call>),
    Filter(Box<(Expr, Filter)>),
    Test(Box<Test>),
    Not(Box<Expr>),
    Neg(Box<Expr>),
    Pos(Box<Expr>),
    /// Operators of one rank, from left to right.
    Math(Box<Expr>, Vec<(MathOp, Expr)>),
    /// `a ~ b ~ c`
    Concat(Vec<Expr>),
    /// `a < b <= c`: every neighbour is compared.
    Compare(Box<Expr>, Vec<(CompareOp, Expr)>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    /// `a if condition else b`
    If(Box<(Expr, Expr, Option<Expr>)>),
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) callee: Expr,
    pub(crate) args: CallArgs,
}

/// `(a, b=c, *d, **e)`
#[derive(Debug, Default)]
pub(crate) struct CallArgs {
    pub(crate) positional: Vec<Expr>,
    pub(crate) named: Vec<(StrId, Expr)>,
    pub(crate) splat: Option<Expr>,
    pub(crate) splat_named: Option<Expr>,
}

#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) name: Box<str>,
    pub(crate) args: CallArgs,
}

#[derive(Debug)]
pub(crate) struct Test {
    pub(crate) value: Expr,
    pub(crate) negated: bool,
    pub(crate) name: Box<str>,
    pub(crate) args: CallArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MathOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
}
