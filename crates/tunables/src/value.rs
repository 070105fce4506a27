//! Values and how they are written.

use crate::Tunable;
use std::borrow::Cow;
use std::fmt;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Count,
    Bytes,
    Microseconds,
    Switch,
    Text,
}

impl Kind {
    /// Its unit, or what it is.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Count => "count",
            Kind::Bytes => "bytes",
            Kind::Microseconds => "microseconds",
            Kind::Switch => "on or off",
            Kind::Text => "text",
        }
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    Switch(bool),
    Text(Cow<'static, str>),
}

/// As it is written for [`Tunable::read`].
impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(formatter, "{number}"),
            Value::Switch(on) => formatter.write_str(if *on { "on" } else { "off" }),
            Value::Text(text) => formatter.write_str(text),
        }
    }
}

impl Tunable {
    /// Reads a value: a number (of bytes also as 64K, 64KiB or 1M), on or off, or a text, in which blanks do not count.
    ///
    /// # Errors
    /// It is none that is allowed; says which are.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let value = match self.kind {
            Kind::Switch => match text {
                "on" | "1" | "yes" | "true" => Some(Value::Switch(true)),
                "off" | "0" | "no" | "false" => Some(Value::Switch(false)),
                _ => None,
            },
            Kind::Text => Some(Value::Text(text.split_whitespace().collect::<String>().into())),
            kind => number(text, kind == Kind::Bytes)
                .filter(|number| (self.least..=self.most).contains(number))
                .map(Value::Number),
        };
        value.ok_or_else(|| {
            format!("'{text}' cannot be the value of {}: it must be {}", self.name, self.allowed())
        })
    }

    /// Which values it may have, in words.
    pub fn allowed(&self) -> String {
        let bound = |number: u64| match (self.kind, number) {
            (_, u64::MAX) => "any".to_owned(),
            (Kind::Bytes, number) => size(number),
            (_, number) => number.to_string(),
        };
        let range = match (self.least, self.most) {
            (least, u64::MAX) => format!("{} or more", bound(least)),
            (least, most) => format!("{} to {}", bound(least), bound(most)),
        };
        match self.kind {
            Kind::Switch => "on or off".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::Count => format!("a number, {range}"),
            Kind::Microseconds => format!("a number of microseconds, {range}"),
            Kind::Bytes => format!("a number of bytes, {range}"),
        }
    }

    /// A value of this row as people read it.
    pub fn show(&self, value: &Value) -> String {
        match value {
            Value::Number(number) if self.kind == Kind::Bytes => size(*number),
            Value::Number(number) if self.kind == Kind::Microseconds => format!("{number} us"),
            Value::Text(text) if text.is_empty() => "none".to_owned(),
            value => value.to_string(),
        }
    }
}

fn number(text: &str, of_bytes: bool) -> Option<u64> {
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic() || character == ' ');
    let number: u64 = digits.replace('_', "").parse().ok()?;
    let unit = text[digits.len()..].trim().to_ascii_lowercase();
    let shift = match unit.as_str() {
        "" => 0,
        _ if !of_bytes => return None,
        "b" => 0,
        "k" | "ki" | "kib" | "kb" => 10,
        "m" | "mi" | "mib" | "mb" => 20,
        "g" | "gi" | "gib" | "gb" => 30,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

/// A number of bytes as people read it.
pub fn size(bytes: u64) -> String {
    let whole = |unit: u64| bytes >= unit && bytes.is_multiple_of(unit);
    match bytes {
        bytes if whole(1 << 30) => format!("{} GiB", bytes >> 30),
        bytes if whole(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if whole(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DIRECT, DIRECT_THRESHOLD, TABLE};

    #[test]
    fn numbers_of_bytes_may_have_a_unit() {
        let row = &TABLE[DIRECT_THRESHOLD];
        for text in ["2097152", "2M", "2 MiB", "2048k", "2_097_152"] {
            assert_eq!(row.read(text), Ok(Value::Number(2 << 20)), "{text}");
        }
        assert_eq!(number("2k", false), None);
        assert_eq!(number("2", false), Some(2));
    }

    #[test]
    fn a_wrong_value_is_told_what_is_allowed() {
        let error = TABLE[DIRECT_THRESHOLD].read("2G").unwrap_err();
        assert!(error.contains("direct_threshold") && error.contains("0 B to 1 GiB"), "{error}");
        assert!(TABLE[DIRECT].read("maybe").unwrap_err().contains("on or off"));
        assert!(TABLE[DIRECT_THRESHOLD].read("-1").is_err());
        assert!(TABLE[DIRECT_THRESHOLD].read("99999999999999999999999").is_err());
    }
}
