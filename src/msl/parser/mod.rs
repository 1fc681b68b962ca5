//! Tokens to a syntax tree: a recursive descent whose depth is bounded.

mod expr;
mod types;

use super::ast::*;
use super::error::Fault;
use super::lexer::{Spot, Token, tokens};
use super::types::Type;

/// Levels of statements and expressions inside each other. What follows the parser recurses over
/// the tree, so that this bounds the stack of all of it.
const DEEPEST: u16 = 100;

type Result<T> = std::result::Result<T, Fault>;

/// Parses from a kernel's parameter list, whose `(` is at byte `start` of `text`, to the end of
/// its body.
pub(super) fn parse_kernel(text: &str, start: usize) -> Result<KernelSyntax> {
    let spots = tokens(text, start)?;
    let mut parser = Parser { spots: &spots, next: 0, depth: 0, in_kernel: true };
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

/// Parses a function from its type, at byte `start`, to the end of its body: one that takes values
/// and gives one.
pub(super) fn parse_helper(text: &str, start: usize) -> Result<HelperSyntax> {
    let spots = tokens(text, start)?;
    let mut parser = Parser { spots: &spots, next: 0, depth: 0, in_kernel: false };
    let result = parser.type_name()?;
    let name = parser.word("a function's name")?.to_owned();
    parser.expect("(")?;
    let mut parameters = Vec::new();
    if !parser.take(")") {
        loop {
            let ty = parser.type_name()?;
            let name = parser.word("a parameter's name")?.to_owned();
            if ty.pointer || !matches!(ty.kind, TypeKind::Known(_)) {
                return Err(Fault::unsupported(ty.at, format!("parameter `{name}`")));
            }
            parameters.push((name, ty));
            if parser.take(")") {
                break;
            }
            parser.expect(",")?;
        }
    }
    parser.expect("{")?;
    let body = parser.block()?;
    Ok(HelperSyntax { name, result, parameters, body })
}

/// Parses `constant T NAME = value;`, which starts at byte `start`.
pub(super) fn parse_constants(text: &str, start: usize) -> Result<Vec<Declaration>> {
    let end =
        text.get(start..).and_then(|rest| rest.find(';')).map_or(text.len(), |end| start + end);
    if text.get(start..end).is_some_and(|constant| constant.contains('{')) {
        // The tokens would end with the brace that closes.
        return Err(Fault::unsupported(0, "a constant with braces"));
    }
    let spots = tokens(text.get(..end).unwrap_or_default(), start)?;
    let mut parser = Parser { spots: &spots, next: 0, depth: 0, in_kernel: false };
    let declarations = parser.declarations()?;
    match parser.token() {
        Token::End => Ok(declarations),
        _ => Err(Fault::parse(parser.at(), "a constant that does not end")),
    }
}

struct Parser<'a> {
    spots: &'a [Spot<'a>],
    next: usize,
    depth: u16,
    in_kernel: bool,
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
                    if self.in_kernel {
                        return Err(Fault::parse(self.at(), "a kernel that returns a value"));
                    }
                    let value = self.comma_free_expression()?;
                    self.expect(";")?;
                    return Ok(Stmt { kind: StmtKind::Return(Some(value)) });
                }
                self.expect(";")?;
                match word {
                    "return" => StmtKind::Return(None),
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
}
