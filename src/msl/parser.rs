//! Tokens to a syntax tree: a recursive descent whose depth is bounded.

use super::ast::*;
use super::error::Fault;
use super::lexer::{Spot, Token, tokens};
use super::types::{Scalar, Type};

/// Levels of statements and expressions inside each other. What follows the parser recurses over
/// the tree, so that this bounds the stack of all of it.
const DEEPEST: u16 = 100;

type Result<T> = std::result::Result<T, Fault>;

/// Parses from a kernel's parameter list, whose `(` is at byte `start` of `text`, to the end of
/// its body.
pub(super) fn parse_kernel(text: &str, start: usize) -> Result<KernelSyntax> {
    let spots = tokens(text, start)?;
    let mut parser = Parser { spots: &spots, next: 0, depth: 0 };
    parser.expect("(")?;
    let mut parameters = Vec::new();
    let mut arguments = 0;
    if !parser.take(")") {
        loop {
            parameters.push(parser.parameter(&mut arguments)?);
            if parser.take(")") {
                break;
            }
            parser.expect(",")?;
        }
    }
    parser.expect("{")?;
    let body = parser.block()?;
    Ok(KernelSyntax { parameters, body })
}

struct Parser<'a> {
    spots: &'a [Spot<'a>],
    next: usize,
    depth: u16,
}

impl<'a> Parser<'a> {
    fn spot(&self, ahead: usize) -> Spot<'a> {
        let last = self.spots.len().saturating_sub(1);
        let spot = self.spots.get((self.next + ahead).min(last)).copied();
        spot.unwrap_or(Spot { token: Token::End, at: 0 })
    }

    fn token(&self) -> Token<'a> {
        self.spot(0).token
    }

    fn at(&self) -> u32 {
        self.spot(0).at
    }

    fn advance(&mut self) {
        self.next += 1;
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.token(), Token::Sign(found) if found == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        if found {
            self.advance();
        }
        found
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.token(), Token::Word(found) if found == word)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.take(sign) {
            return Ok(());
        }
        Err(Fault::parse(self.at(), format!("expected `{sign}`, found {}", self.found())))
    }

    fn found(&self) -> String {
        match self.token() {
            Token::Word(word) => format!("`{word}`"),
            Token::Int { value, .. } => format!("`{value}`"),
            Token::Float { value, .. } => format!("`{value}`"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".to_owned(),
        }
    }

    fn word(&mut self, what: &str) -> Result<&'a str> {
        match self.token() {
            Token::Word(word) => {
                self.advance();
                Ok(word)
            }
            _ => Err(Fault::parse(self.at(), format!("expected {what}, found {}", self.found()))),
        }
    }

    /// Runs `parse` one level further down.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEEPEST {
            return Err(Fault::unsupported(self.at(), "nesting this deep"));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn parameter(&mut self, arguments: &mut u32) -> Result<Parameter> {
        let at = self.at();
        let (mut device, mut constant_space, mut constant) = (false, false, false);
        loop {
            match self.token() {
                Token::Word("device") => device = true,
                Token::Word("constant") => constant_space = true,
                Token::Word("const") => constant = true,
                Token::Word("volatile") => {}
                Token::Word("threadgroup") => {
                    return Err(Fault::unsupported(at, "a threadgroup argument"));
                }
                _ => break,
            }
            self.advance();
        }
        let type_name = self.type_name()?;
        let TypeKind::Known(ty) = type_name.kind else {
            return Err(Fault::parse(at, "a parameter without a type"));
        };
        let reference = self.take("&");
        while self.take_word("const") || self.take_word("restrict") {}
        let name = self.word("a parameter's name")?.to_owned();
        let attribute = self.attribute()?;
        constant |= constant_space;
        if !(device || constant_space) {
            let Some((word, _)) = attribute else {
                return Err(Fault::unsupported(at, format!("parameter `{name}` by value")));
            };
            let builtin = Builtin::from_name(word)
                .ok_or_else(|| Fault::unsupported(at, format!("attribute `{word}`")))?;
            return Ok(Parameter::Builtin { name, ty, builtin });
        }
        if !(type_name.pointer || reference) {
            return Err(Fault::parse(at, format!("parameter `{name}` is no pointer or reference")));
        }
        let index = match attribute {
            None => *arguments,
            Some(("buffer", Some(index))) => index,
            Some((word, _)) => {
                return Err(Fault::unsupported(at, format!("attribute `{word}` of a buffer")));
            }
        };
        *arguments = index.saturating_add(1);
        if reference && constant_space && ty.lanes == 1 && ty.scalar.is_integer() {
            return Ok(Parameter::Int { name, index, ty: ty.scalar });
        }
        Ok(Parameter::Buffer { name, index, ty, constant, reference })
    }

    /// `[[word]]` or `[[word(number)]]`, if one is there.
    fn attribute(&mut self) -> Result<Option<(&'a str, Option<u32>)>> {
        if !(self.is("[") && self.spot(1).token == Token::Sign("[")) {
            return Ok(None);
        }
        self.advance();
        self.advance();
        let word = self.word("an attribute")?;
        let mut number = None;
        if self.take("(") {
            let Token::Int { value, .. } = self.token() else {
                return Err(Fault::parse(self.at(), "an attribute's argument is no number"));
            };
            let value = u32::try_from(value).ok().filter(|&index| index < 1024);
            number = Some(value.ok_or_else(|| Fault::parse(self.at(), "an index above 1023"))?);
            self.advance();
            self.expect(")")?;
        }
        self.expect("]")?;
        self.expect("]")?;
        Ok(Some((word, number)))
    }

    /// What stands between an opening brace, already taken, and its closing one.
    fn block(&mut self) -> Result<Vec<Stmt>> {
        let mut statements = Vec::new();
        while !self.take("}") {
            if self.token() == Token::End {
                return Err(Fault::parse(self.at(), "a block that is not closed"));
            }
            statements.push(self.statement()?);
        }
        Ok(statements)
    }

    fn statement(&mut self) -> Result<Stmt> {
        self.deeper(Self::statement_inside)
    }

    fn statement_inside(&mut self) -> Result<Stmt> {
        let at = self.at();
        let kind = match self.token() {
            Token::Sign("{") => {
                self.advance();
                StmtKind::Block(self.block()?)
            }
            Token::Sign(";") => {
                self.advance();
                StmtKind::Empty
            }
            Token::Sign("#") => {
                return Err(Fault::unsupported(at, "a preprocessor directive in a kernel"));
            }
            Token::Word("if") => {
                self.advance();
                self.take_word("constexpr");
                self.expect("(")?;
                let condition = self.expression()?;
                self.expect(")")?;
                let accept = Box::new(self.statement()?);
                let reject = match self.take_word("else") {
                    true => Some(Box::new(self.statement()?)),
                    false => None,
                };
                StmtKind::If { condition, accept, reject }
            }
            Token::Word("for") => {
                self.advance();
                self.expect("(")?;
                let initial = Box::new(self.simple_statement()?);
                let condition = if self.is(";") { None } else { Some(self.expression()?) };
                self.expect(";")?;
                let step = if self.is(")") { None } else { Some(self.comma_free_expression()?) };
                self.expect(")")?;
                let body = Box::new(self.statement()?);
                StmtKind::For { initial, condition, step, body }
            }
            Token::Word("while") => {
                self.advance();
                self.expect("(")?;
                let condition = self.expression()?;
                self.expect(")")?;
                StmtKind::While { condition, body: Box::new(self.statement()?) }
            }
            Token::Word("do") => {
                self.advance();
                let body = Box::new(self.statement()?);
                if !self.take_word("while") {
                    return Err(Fault::parse(self.at(), "a `do` without its `while`"));
                }
                self.expect("(")?;
                let condition = self.expression()?;
                self.expect(")")?;
                self.expect(";")?;
                StmtKind::DoWhile { body, condition }
            }
            Token::Word(word @ ("return" | "break" | "continue")) => {
                self.advance();
                if word == "return" && !self.is(";") {
                    return Err(Fault::parse(self.at(), "a kernel that returns a value"));
                }
                self.expect(";")?;
                match word {
                    "return" => StmtKind::Return,
                    "break" => StmtKind::Break,
                    _ => StmtKind::Continue,
                }
            }
            Token::Word(
                word @ ("switch" | "goto" | "struct" | "class" | "union" | "enum" | "using"
                | "typedef" | "template" | "case" | "default" | "static" | "asm"
                | "namespace"),
            ) => return Err(Fault::unsupported(at, format!("`{word}`"))),
            _ => return self.simple_statement(),
        };
        Ok(Stmt { kind })
    }

    fn comma_free_expression(&mut self) -> Result<Expr> {
        let step = self.expression()?;
        if self.is(",") {
            return Err(Fault::unsupported(self.at(), "the comma operator"));
        }
        Ok(step)
    }

    /// A declaration or an expression, with the `;` after it.
    fn simple_statement(&mut self) -> Result<Stmt> {
        if self.take(";") {
            return Ok(Stmt { kind: StmtKind::Empty });
        }
        let kind = if self.declaration_ahead() {
            StmtKind::Declare(self.declarations()?)
        } else {
            StmtKind::Expr(self.comma_free_expression()?)
        };
        self.expect(";")?;
        Ok(Stmt { kind })
    }

    /// Whether a declaration starts here: a type, then not what would make it an expression.
    fn declaration_ahead(&self) -> bool {
        let Token::Word(word) = self.token() else {
            return false;
        };
        if matches!(
            word,
            "auto"
                | "const"
                | "constexpr"
                | "threadgroup"
                | "device"
                | "constant"
                | "thread"
                | "volatile"
                | "unsigned"
                | "signed"
        ) {
            return true;
        }
        if word == "decltype" {
            return true;
        }
        // `metal::uint2 x` is a declaration, `float2(1, 2)` an expression.
        let mut ahead = 0;
        let mut last = word;
        while self.spot(ahead + 1).token == Token::Sign("::") {
            let Token::Word(next) = self.spot(ahead + 2).token else {
                return false;
            };
            last = next;
            ahead += 2;
        }
        Type::from_name(last).is_some()
            && !matches!(
                self.spot(ahead + 1).token,
                Token::Sign("(") | Token::Sign("{") | Token::Sign("::")
            )
    }

    fn declarations(&mut self) -> Result<Vec<Declaration>> {
        let mut space = Space::Thread;
        loop {
            match self.token() {
                Token::Word("threadgroup") => space = Space::Threadgroup,
                Token::Word(
                    "const" | "constexpr" | "volatile" | "device" | "constant" | "thread",
                ) => {}
                _ => break,
            }
            self.advance();
        }
        let ty = self.type_name()?;
        let mut declarations = Vec::new();
        loop {
            let at = self.at();
            if self.is("&") {
                return Err(Fault::unsupported(at, "a reference"));
            }
            let name = self.word("a name")?.to_owned();
            let mut length = None;
            if self.take("[") {
                length = Some(self.expression()?);
                self.expect("]")?;
                if self.is("[") {
                    return Err(Fault::unsupported(self.at(), "an array of arrays"));
                }
            }
            let initial = if self.take("=") {
                if self.is("{") {
                    return Err(Fault::unsupported(self.at(), "an initialiser list"));
                }
                Some(self.expression()?)
            } else {
                None
            };
            declarations.push(Declaration { at, name, space, ty: ty.clone(), length, initial });
            if !self.take(",") {
                return Ok(declarations);
            }
        }
    }

    /// A type: qualifiers, a name or `auto` or `decltype(..)`, perhaps `*`.
    fn type_name(&mut self) -> Result<TypeName> {
        let at = self.at();
        while matches!(
            self.token(),
            Token::Word("const" | "volatile" | "device" | "constant" | "threadgroup" | "thread")
        ) {
            self.advance();
        }
        self.take("::");
        let kind = match self.token() {
            Token::Word("auto") => {
                self.advance();
                TypeKind::Auto
            }
            Token::Word("decltype") => {
                self.advance();
                self.expect("(")?;
                let inside = self.expression()?;
                self.expect(")")?;
                TypeKind::Decltype(Box::new(inside))
            }
            Token::Word("unsigned" | "signed") => TypeKind::Known(self.spelled_out_integer()?),
            Token::Word(word) => {
                self.advance();
                self.named_type(word, at)?
            }
            _ => {
                return Err(Fault::parse(at, format!("expected a type, found {}", self.found())));
            }
        };
        while self.take_word("const") || self.take_word("volatile") {}
        let pointer = self.take("*");
        if pointer && self.is("*") {
            return Err(Fault::unsupported(self.at(), "a pointer to a pointer"));
        }
        while pointer && (self.take_word("const") || self.take_word("restrict")) {}
        Ok(TypeName { at, kind, pointer })
    }

    fn spelled_out_integer(&mut self) -> Result<Type> {
        let unsigned = self.take_word("unsigned");
        if !unsigned {
            self.take_word("signed");
        }
        let scalar = match self.token() {
            Token::Word("char") => (Scalar::Char, Scalar::UChar),
            Token::Word("short") => (Scalar::Short, Scalar::UShort),
            Token::Word("int") => (Scalar::Int, Scalar::UInt),
            Token::Word("long") => (Scalar::Long, Scalar::ULong),
            _ => {
                let scalar = if unsigned { Scalar::UInt } else { Scalar::Int };
                return Ok(Type::scalar(scalar));
            }
        };
        self.advance();
        Ok(Type::scalar(if unsigned { scalar.1 } else { scalar.0 }))
    }

    /// A type from its first word on, which is taken already.
    fn named_type(&mut self, first: &'a str, at: u32) -> Result<TypeKind> {
        let mut word = first;
        loop {
            let argument = if template_of_types(word) && self.take("<") {
                let argument = self.deeper(Self::type_name)?;
                self.expect(">")?;
                Some(argument)
            } else {
                None
            };
            if self.take("::") {
                let outer = word;
                word = self.word("a type")?;
                if let Some(argument) = argument {
                    // `AtomicType<T>::type` is memory that holds a T.
                    if outer == "AtomicType" && word == "type" {
                        return Ok(argument.kind);
                    }
                    return Err(Fault::unsupported(at, format!("type `{outer}<..>::{word}`")));
                }
                continue;
            }
            return match (argument, word) {
                (Some(argument), "atomic" | "AtomicType_t") => Ok(argument.kind),
                (Some(_), _) => Err(Fault::unsupported(at, format!("type `{word}<..>`"))),
                (None, "atomic_int") => Ok(TypeKind::Known(Type::scalar(Scalar::Int))),
                (None, "atomic_uint") => Ok(TypeKind::Known(Type::scalar(Scalar::UInt))),
                (None, "atomic_float") => Ok(TypeKind::Known(Type::scalar(Scalar::Float))),
                (None, _) => Type::from_name(word)
                    .map(TypeKind::Known)
                    .ok_or_else(|| Fault::unsupported(at, format!("type `{word}`"))),
            };
        }
    }

    fn expression(&mut self) -> Result<Expr> {
        self.deeper(Self::assignment)
    }

    fn assignment(&mut self) -> Result<Expr> {
        let target = self.conditional()?;
        let at = self.at();
        let op = match self.token() {
            Token::Sign("=") => None,
            Token::Sign("+=") => Some(BinaryOp::Add),
            Token::Sign("-=") => Some(BinaryOp::Subtract),
            Token::Sign("*=") => Some(BinaryOp::Multiply),
            Token::Sign("/=") => Some(BinaryOp::Divide),
            Token::Sign("%=") => Some(BinaryOp::Modulo),
            Token::Sign("&=") => Some(BinaryOp::And),
            Token::Sign("|=") => Some(BinaryOp::Or),
            Token::Sign("^=") => Some(BinaryOp::Xor),
            Token::Sign("<<=") => Some(BinaryOp::ShiftLeft),
            Token::Sign(">") if self.glued(&[">", ">", "="]) => {
                self.advance();
                self.advance();
                Some(BinaryOp::ShiftRight)
            }
            _ => return Ok(target),
        };
        self.advance();
        let value = self.expression()?;
        let depth = target.depth.max(value.depth);
        let kind = ExprKind::Assign { op, target: Box::new(target), value: Box::new(value) };
        self.node(at, depth, kind)
    }

    fn conditional(&mut self) -> Result<Expr> {
        let condition = self.binary(0)?;
        let at = self.at();
        if !self.take("?") {
            return Ok(condition);
        }
        let accept = self.expression()?;
        self.expect(":")?;
        let reject = self.deeper(Self::assignment)?;
        let depth = condition.depth.max(accept.depth).max(reject.depth);
        let kind = ExprKind::Conditional {
            condition: Box::new(condition),
            accept: Box::new(accept),
            reject: Box::new(reject),
        };
        self.node(at, depth, kind)
    }

    /// A node over what has `depth` levels.
    fn node(&self, at: u32, depth: u16, kind: ExprKind) -> Result<Expr> {
        if depth >= DEEPEST {
            return Err(Fault::unsupported(at, "an expression this deep"));
        }
        Ok(Expr { at, depth: depth + 1, kind })
    }

    /// Whether these signs stand here with nothing between them.
    fn glued(&self, signs: &[&str]) -> bool {
        let mut at = self.at();
        signs.iter().enumerate().all(|(ahead, sign)| {
            let spot = self.spot(ahead);
            let expected = at;
            at = at.saturating_add(u32::try_from(sign.len()).unwrap_or(u32::MAX));
            spot.at == expected && matches!(spot.token, Token::Sign(found) if found == *sign)
        })
    }

    /// The binary operator here, its precedence and how many tokens it takes.
    fn operator(&self) -> Option<(BinaryOp, u8, usize)> {
        use BinaryOp::*;
        let Token::Sign(sign) = self.token() else {
            return None;
        };
        let (op, precedence) = match sign {
            "||" => (LogicalOr, 1),
            "&&" => (LogicalAnd, 2),
            "|" => (Or, 3),
            "^" => (Xor, 4),
            "&" => (And, 5),
            "==" => (Equal, 6),
            "!=" => (NotEqual, 6),
            "<" => (Less, 7),
            "<=" => (LessEqual, 7),
            ">" if self.glued(&[">", ">", "="]) => return None,
            ">" if self.glued(&[">", ">"]) => return Some((ShiftRight, 8, 2)),
            ">" if self.glued(&[">", "="]) => return Some((GreaterEqual, 7, 2)),
            ">" => (Greater, 7),
            "<<" => (ShiftLeft, 8),
            "+" => (Add, 9),
            "-" => (Subtract, 9),
            "*" => (Multiply, 10),
            "/" => (Divide, 10),
            "%" => (Modulo, 10),
            _ => return None,
        };
        Some((op, precedence, 1))
    }

    fn binary(&mut self, above: u8) -> Result<Expr> {
        let mut left = self.unary()?;
        while let Some((op, precedence, length)) = self.operator().filter(|found| found.1 > above) {
            let at = self.at();
            self.next += length;
            let right = self.deeper(|parser| parser.binary(precedence))?;
            let depth = left.depth.max(right.depth);
            let kind = ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) };
            left = self.node(at, depth, kind)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr> {
        let at = self.at();
        let op = match self.token() {
            Token::Sign("-") => UnaryOp::Negate,
            Token::Sign("+") => UnaryOp::Plus,
            Token::Sign("!") => UnaryOp::Not,
            Token::Sign("~") => UnaryOp::Complement,
            Token::Sign("*") => UnaryOp::Dereference,
            Token::Sign("&") => UnaryOp::AddressOf,
            Token::Sign(sign @ ("++" | "--")) => {
                self.advance();
                let target = self.deeper(Self::unary)?;
                let depth = target.depth;
                let target = Box::new(target);
                return self.node(
                    at,
                    depth,
                    ExprKind::Step { target, up: sign == "++", prefix: true },
                );
            }
            Token::Sign("(") if self.type_in_parentheses() => {
                self.advance();
                let ty = self.type_name()?;
                self.expect(")")?;
                let operand = self.deeper(Self::unary)?;
                let depth = operand.depth;
                let kind = if ty.pointer {
                    ExprKind::PointerCast { ty, operand: Box::new(operand) }
                } else {
                    ExprKind::Cast { ty, arguments: vec![operand] }
                };
                return self.node(at, depth, kind);
            }
            _ => return self.postfix(),
        };
        self.advance();
        let operand = self.deeper(Self::unary)?;
        let depth = operand.depth;
        self.node(at, depth, ExprKind::Unary { op, operand: Box::new(operand) })
    }

    /// Whether `(T)` or `(T*)` starts here: a cast.
    fn type_in_parentheses(&self) -> bool {
        let Token::Word(word) = self.spot(1).token else {
            return false;
        };
        match word {
            "device" | "constant" | "threadgroup" | "thread" | "const" | "unsigned" | "signed" => {
                true
            }
            "decltype" => false,
            _ => {
                let mut ahead = 1;
                let mut last = word;
                while self.spot(ahead + 1).token == Token::Sign("::") {
                    let Token::Word(next) = self.spot(ahead + 2).token else {
                        return false;
                    };
                    last = next;
                    ahead += 2;
                }
                Type::from_name(last).is_some()
                    && matches!(self.spot(ahead + 1).token, Token::Sign(")") | Token::Sign("*"))
            }
        }
    }

    fn postfix(&mut self) -> Result<Expr> {
        let mut base = self.primary()?;
        loop {
            let at = self.at();
            let depth = base.depth;
            let kind = match self.token() {
                Token::Sign("[") => {
                    self.advance();
                    let index = self.expression()?;
                    self.expect("]")?;
                    let depth = depth.max(index.depth);
                    let kind = ExprKind::Index { base: Box::new(base), index: Box::new(index) };
                    base = self.node(at, depth, kind)?;
                    continue;
                }
                Token::Sign(".") => {
                    self.advance();
                    let name = self.word("a member")?.to_owned();
                    ExprKind::Member { base: Box::new(base), name }
                }
                Token::Sign("->") => return Err(Fault::unsupported(at, "`->`")),
                Token::Sign(sign @ ("++" | "--")) => {
                    self.advance();
                    ExprKind::Step { target: Box::new(base), up: sign == "++", prefix: false }
                }
                _ => return Ok(base),
            };
            base = self.node(at, depth, kind)?;
        }
    }

    fn primary(&mut self) -> Result<Expr> {
        let at = self.at();
        let kind = match self.token() {
            Token::Int { value, ty } => {
                self.advance();
                ExprKind::Int { value, ty }
            }
            Token::Float { value, ty } => {
                self.advance();
                ExprKind::Float { value, ty }
            }
            Token::Sign("(") => {
                self.advance();
                let inside = self.expression()?;
                if self.is(",") {
                    return Err(Fault::unsupported(self.at(), "the comma operator"));
                }
                self.expect(")")?;
                return Ok(inside);
            }
            Token::Word(word @ ("true" | "false")) => {
                self.advance();
                ExprKind::Bool(word == "true")
            }
            Token::Word("static_cast") => {
                let (ty, operand) = self.cast_operands()?;
                if ty.pointer {
                    let depth = operand.depth;
                    return self.node(
                        at,
                        depth,
                        ExprKind::PointerCast { ty, operand: Box::new(operand) },
                    );
                }
                let depth = operand.depth;
                return self.node(at, depth, ExprKind::Cast { ty, arguments: vec![operand] });
            }
            Token::Word("reinterpret_cast") => {
                let (ty, operand) = self.cast_operands()?;
                if !ty.pointer {
                    return Err(Fault::unsupported(at, "reinterpret_cast to what is no pointer"));
                }
                let depth = operand.depth;
                return self.node(
                    at,
                    depth,
                    ExprKind::PointerCast { ty, operand: Box::new(operand) },
                );
            }
            Token::Word("decltype" | "unsigned" | "signed") => return self.constructor(),
            Token::Word(
                "sizeof" | "alignof" | "new" | "delete" | "const_cast" | "throw" | "this",
            ) => {
                return Err(Fault::unsupported(at, self.found()));
            }
            Token::Sign("[") => return Err(Fault::unsupported(at, "a lambda")),
            Token::Sign("{") => return Err(Fault::unsupported(at, "an initialiser list")),
            Token::Word(_) | Token::Sign("::") => return self.name(),
            _ => {
                let found = self.found();
                return Err(Fault::parse(at, format!("expected an expression, found {found}")));
            }
        };
        self.node(at, 0, kind)
    }

    /// `<T>(x)` after a cast's keyword, which stands here.
    fn cast_operands(&mut self) -> Result<(TypeName, Expr)> {
        self.advance();
        self.expect("<")?;
        let ty = self.deeper(Self::type_name)?;
        self.expect(">")?;
        self.expect("(")?;
        let operand = self.expression()?;
        self.expect(")")?;
        Ok((ty, operand))
    }

    /// `T(..)` or `T{..}`.
    fn constructor(&mut self) -> Result<Expr> {
        let at = self.at();
        let ty = self.type_name()?;
        let close = match self.token() {
            Token::Sign("(") => ")",
            Token::Sign("{") => "}",
            _ => return Err(Fault::parse(self.at(), "a type where a value should be")),
        };
        self.advance();
        let arguments = self.arguments(close)?;
        let depth = arguments.iter().map(|argument| argument.depth).max().unwrap_or(0);
        self.node(at, depth, ExprKind::Cast { ty, arguments })
    }

    fn arguments(&mut self, close: &str) -> Result<Vec<Expr>> {
        let mut arguments = Vec::new();
        if self.take(close) {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if self.take(close) {
                return Ok(arguments);
            }
            self.expect(",")?;
        }
    }

    /// A variable, a call, or a constructor of a named type.
    fn name(&mut self) -> Result<Expr> {
        let at = self.at();
        self.take("::");
        let start = self.next;
        let mut segments = Vec::new();
        loop {
            let name = self.word("a name")?;
            let mut arguments = Vec::new();
            if template_of_types(name) && self.take("<") {
                loop {
                    arguments.push(self.deeper(Self::type_name)?);
                    if self.take(">") {
                        break;
                    }
                    self.expect(",")?;
                }
            }
            segments.push(Segment { name: name.to_owned(), arguments });
            if !self.take("::") {
                break;
            }
        }
        let last = segments.last().map_or("", |segment| segment.name.as_str());
        let is_type = Type::from_name(last).is_some() && (self.is("(") || self.is("{"));
        if is_type {
            self.next = start;
            return self.constructor();
        }
        let path = Path { segments };
        if !self.take("(") {
            return self.node(at, 0, ExprKind::Path(path));
        }
        let mut arguments = self.arguments(")")?;
        let depth = arguments.iter().map(|argument| argument.depth).max().unwrap_or(0);
        let kind = if path.segments.last().is_some_and(|segment| segment.name == "as_type") {
            let ty = path.template_argument().cloned();
            match (ty, arguments.pop(), arguments.is_empty()) {
                (Some(ty), Some(operand), true) => {
                    ExprKind::Bits { ty, operand: Box::new(operand) }
                }
                _ => return Err(Fault::parse(at, "`as_type` takes a type and a value")),
            }
        } else {
            ExprKind::Call { callee: path, arguments }
        };
        self.node(at, depth, kind)
    }
}

/// Names after which `<` opens a list of types.
fn template_of_types(name: &str) -> bool {
    matches!(
        name,
        "AtomicType"
            | "AtomicType_t"
            | "atomic"
            | "numeric_limits"
            | "MaxOp"
            | "MinOp"
            | "as_type"
            | "cast_to"
            | "opmath_t"
            | "accum_t"
    )
}
