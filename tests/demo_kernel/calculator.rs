//! Arithmetic with variables, and calls of commands.

use std::collections::BTreeMap;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Number(f64),
    Text(String),
    Nothing,
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(x) => write!(f, "{x}"),
            Self::Text(text) => f.write_str(text),
            Self::Nothing => Ok(()),
        }
    }
}

pub type Variables = BTreeMap<String, Value>;
/// Runs a command by its name; an error is a name and a message.
pub type Command<'a> = dyn FnMut(&str, &[Value]) -> Result<Value, Stop> + 'a;

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// More text would help.
    Incomplete,
    /// An error: its name, and what it is.
    Error(String, String),
    Interrupted,
}

/// An error of the language.
pub fn wrong(text: impl Into<String>) -> Stop {
    Stop::Error("SyntaxError".into(), text.into())
}

/// Evaluates one line.
pub struct Line<'a, 'c> {
    pub rest: &'a str,
    pub variables: &'a mut Variables,
    pub command: &'a mut Command<'c>,
}

impl Line<'_, '_> {
    /// `name = expression`, or an expression; nothing may follow.
    pub fn statement(&mut self) -> Result<Value, Stop> {
        let target = self
            .rest
            .split_once('=')
            .map(|(name, value)| (name.trim().to_string(), value));
        let value = match target {
            Some((name, value)) if !name.is_empty() && name.chars().all(is_name) => {
                self.rest = value;
                let value = self.sum()?;
                self.variables.insert(name, value);
                Value::Nothing
            }
            _ => self.sum()?,
        };
        match self.peek() {
            None => Ok(value),
            Some(c) => Err(wrong(format!("'{c}' is not expected here"))),
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.rest = &self.rest[c.len_utf8()..];
        }
        found
    }

    fn sum(&mut self) -> Result<Value, Stop> {
        let mut value = self.product()?;
        loop {
            let sign = match self.peek() {
                Some('+') => 1.0,
                Some('-') => -1.0,
                _ => return Ok(value),
            };
            self.rest = &self.rest[1..];
            let term = self.product()?;
            value = Value::Number(number(&value)? + sign * number(&term)?);
        }
    }

    fn product(&mut self) -> Result<Value, Stop> {
        let mut value = self.factor()?;
        loop {
            let divide = match self.peek() {
                Some('*') => false,
                Some('/') => true,
                _ => return Ok(value),
            };
            self.rest = &self.rest[1..];
            let by = number(&self.factor()?)?;
            let value_before = number(&value)?;
            if divide && by == 0.0 {
                return Err(Stop::Error(
                    "ZeroDivisionError".into(),
                    format!("{value_before} / 0"),
                ));
            }
            value = Value::Number(if divide {
                value_before / by
            } else {
                value_before * by
            });
        }
    }

    fn factor(&mut self) -> Result<Value, Stop> {
        if self.take('-') {
            return Ok(Value::Number(-number(&self.factor()?)?));
        }
        if self.take('(') {
            let value = self.sum()?;
            return self.close().map(|()| value);
        }
        if self.take('"') {
            let (text, rest) = self.rest.split_once('"').ok_or(Stop::Incomplete)?;
            self.rest = rest;
            return Ok(Value::Text(text.into()));
        }
        let end = self
            .rest
            .find(|c| !is_name(c) && c != '.')
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if word.is_empty() {
            return match self.peek() {
                None => Err(Stop::Incomplete),
                Some(c) => Err(wrong(format!("'{c}' is not expected here"))),
            };
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = word
                .parse()
                .map_err(|_| wrong(format!("{word} is not a number")))?;
            return Ok(Value::Number(number));
        }
        if self.take('(') {
            return self.call(word);
        }
        let unknown = || Stop::Error("NameError".into(), format!("{word} is not known"));
        self.variables.get(word).cloned().ok_or_else(unknown)
    }

    fn call(&mut self, word: &str) -> Result<Value, Stop> {
        let mut arguments = Vec::new();
        if !self.take(')') {
            loop {
                arguments.push(self.sum()?);
                if !self.take(',') {
                    break;
                }
            }
            self.close()?;
        }
        (self.command)(word, &arguments)
    }

    fn close(&mut self) -> Result<(), Stop> {
        match self.peek() {
            None => Err(Stop::Incomplete),
            Some(_) if self.take(')') => Ok(()),
            Some(c) => Err(wrong(format!("'{c}' where ')' is expected"))),
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The number in a value.
pub fn number(value: &Value) -> Result<f64, Stop> {
    match value {
        Value::Number(x) => Ok(*x),
        other => Err(Stop::Error(
            "TypeError".into(),
            format!("'{other}' is not a number"),
        )),
    }
}
