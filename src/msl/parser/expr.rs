//! Expressions, by precedence.

use super::super::ast::*;
use super::super::error::Fault;
use super::super::lexer::Token;
use super::super::types::Type;
use super::types::template_of_types;
use super::{DEEPEST, Parser, Result};

impl<'a> Parser<'a> {
    pub(super) fn expression(&mut self) -> Result<Expr> {
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

#[cfg(test)]
mod tests {
    use super::super::super::lexer::tokens;
    use super::*;

    /// The expression with all its parentheses.
    fn shape(expr: &Expr) -> String {
        let list = |exprs: &[Expr]| exprs.iter().map(shape).collect::<Vec<_>>().join(", ");
        match &expr.kind {
            ExprKind::Int { value, .. } => value.to_string(),
            ExprKind::Float { value, .. } => format!("{value:?}"),
            ExprKind::Bool(value) => value.to_string(),
            ExprKind::Path(path) => path.joined("::"),
            ExprKind::Unary { op, operand } => format!("{op:?}({})", shape(operand)),
            ExprKind::Binary { op, left, right } => {
                format!("{op:?}({}, {})", shape(left), shape(right))
            }
            ExprKind::Assign { op, target, value } => {
                format!("Assign{op:?}({}, {})", shape(target), shape(value))
            }
            ExprKind::Step { target, up, prefix } => {
                format!("Step({}, {up}, {prefix})", shape(target))
            }
            ExprKind::Conditional { condition, accept, reject } => {
                format!("If({}, {}, {})", shape(condition), shape(accept), shape(reject))
            }
            ExprKind::Call { callee, arguments } => {
                format!("{}({})", callee.joined("::"), list(arguments))
            }
            ExprKind::Index { base, index } => format!("Index({}, {})", shape(base), shape(index)),
            ExprKind::Member { base, name } => format!("Member({}, {name})", shape(base)),
            ExprKind::Cast { arguments, .. } => format!("Cast({})", list(arguments)),
            ExprKind::PointerCast { operand, .. } => format!("PointerCast({})", shape(operand)),
            ExprKind::Bits { operand, .. } => format!("Bits({})", shape(operand)),
        }
    }

    fn parsed(text: &str) -> String {
        // In braces, for the tokens end with the first that closes.
        let text = format!("{{{text}}}");
        let spots = tokens(&text, 0).unwrap();
        let mut parser = Parser { spots: &spots, next: 1, depth: 0, in_kernel: true };
        let expr = parser.expression().unwrap();
        assert_eq!(parser.token(), Token::Sign("}"), "{text}");
        shape(&expr)
    }

    #[test]
    fn precedence_follows_cpp() {
        for (text, expected) in [
            ("a + b * c - d", "Subtract(Add(a, Multiply(b, c)), d)"),
            ("a << 1 + 2 >> b", "ShiftRight(ShiftLeft(a, Add(1, 2)), b)"),
            ("a & b == c | d ^ e", "Or(And(a, Equal(b, c)), Xor(d, e))"),
            ("a < b != c >= d", "NotEqual(Less(a, b), GreaterEqual(c, d))"),
            ("a || b && c || d", "LogicalOr(LogicalOr(a, LogicalAnd(b, c)), d)"),
            ("a ? b : c ? d : e", "If(a, b, If(c, d, e))"),
            ("a = b ? c : d = e", "AssignNone(a, If(b, c, AssignNone(d, e)))"),
            ("a >>= b > c", "AssignSome(ShiftRight)(a, Greater(b, c))"),
            (
                "-a.x[1]++ * !b",
                "Multiply(Negate(Step(Index(Member(a, x), 1), true, false)), Not(b))",
            ),
            ("(int)a + (b)", "Add(Cast(a), b)"),
            ("(a) - b", "Subtract(a, b)"),
            ("static_cast<decltype(a>b)>(c) > d", "Greater(Cast(c), d)"),
            ("::metal::precise::exp(a) - x::y", "Subtract(metal::precise::exp(a), x::y)"),
            ("metal::float2(a, 1)", "Cast(a, 1)"),
            ("float3{a, b, c}.zyx", "Member(Cast(a, b, c), zyx)"),
            ("as_type<uint>(a)", "Bits(a)"),
            ("(device uint*)a + 1", "Add(PointerCast(a), 1)"),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn templates_close_next_to_each_other() {
        let text = "reinterpret_cast<device c10::metal::AtomicType<float>::type*>(a)";
        assert_eq!(parsed(text), "PointerCast(a)");
        assert_eq!(parsed("static_cast<metal::atomic<int>>(a)"), "Cast(a)");
    }
}
