//! Info objects: ordered key and value pairs (MPI 5.0, chapter 10).

use crate::constants::{
    MPI_ERR_ARG, MPI_ERR_INFO_KEY, MPI_ERR_INFO_NOKEY, MPI_ERR_INFO_VALUE, MPI_MAX_INFO_KEY, MPI_MAX_INFO_VAL,
};
use crate::{Error, Result};

/// The longest key in bytes; MPI_MAX_INFO_KEY counts the terminating zero.
pub const LONGEST_KEY_BYTES: usize = MPI_MAX_INFO_KEY as usize - 1;

/// The longest value in bytes; MPI_MAX_INFO_VAL counts the terminating zero.
pub const LONGEST_VALUE_BYTES: usize = MPI_MAX_INFO_VAL as usize - 1;

/// Key and value pairs in the order in which the keys were first set. Keys and values are bytes as the program gave them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    pairs: Vec<(Box<[u8]>, Box<[u8]>)>,
}

impl Info {
    /// An info object without keys.
    pub const fn new() -> Info {
        Info { pairs: Vec::new() }
    }

    /// MPI_Info_set: a key that is there keeps its place and gets the new value.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        if value.len() > LONGEST_VALUE_BYTES {
            return Err(Error::new(
                MPI_ERR_INFO_VALUE,
                format!(
                    "the value for key \"{}\" has {} bytes; at most {LONGEST_VALUE_BYTES} are allowed",
                    key.escape_ascii(),
                    value.len()
                ),
            ));
        }
        match self.pairs.iter_mut().find(|(present, _)| **present == *key) {
            Some((_, present)) => *present = value.into(),
            None => self.pairs.push((key.into(), value.into())),
        }
        Ok(())
    }

    /// The value of a key, if it is set. An impossible key is an error.
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        check_key(key)?;
        Ok(self.value(key))
    }

    /// As [`Info::get`], for keys that this library names itself.
    pub fn value(&self, key: &[u8]) -> Option<&[u8]> {
        self.pairs.iter().find(|(present, _)| **present == *key).map(|(_, value)| &**value)
    }

    /// MPI_Info_delete.
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        check_key(key)?;
        match self.pairs.iter().position(|(present, _)| **present == *key) {
            Some(index) => {
                self.pairs.remove(index);
                Ok(())
            }
            None => Err(Error::new(
                MPI_ERR_INFO_NOKEY,
                format!(
                    "key \"{}\" is not set in the info object; only a key that is set can be deleted",
                    key.escape_ascii()
                ),
            )),
        }
    }

    /// How many keys are set.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether none is set.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// MPI_Info_get_nthkey.
    pub fn nth_key(&self, index: i32) -> Result<&[u8]> {
        let pair = usize::try_from(index).ok().and_then(|index| self.pairs.get(index));
        pair.map(|(key, _)| &**key).ok_or_else(|| {
            Error::new(
                MPI_ERR_ARG,
                match self.pairs.len() {
                    0 => format!("there is no key number {index}; the info object has no keys"),
                    count => format!(
                        "there is no key number {index}; the info object's keys are 0 to {}",
                        count - 1
                    ),
                },
            )
        })
    }

    /// All pairs in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.pairs.iter().map(|(key, value)| (&**key, &**value))
    }
}

fn check_key(key: &[u8]) -> Result<()> {
    match key.len() {
        0 => Err(Error::new(MPI_ERR_INFO_KEY, "the key is empty; a key has at least one character")),
        length if length > LONGEST_KEY_BYTES => Err(Error::new(
            MPI_ERR_INFO_KEY,
            format!("the key has {length} bytes; at most {LONGEST_KEY_BYTES} are allowed"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order() {
        let mut info = Info::new();
        for (key, value) in [("b", "1"), ("a", "2"), ("c", "3"), ("b", "4")] {
            info.set(key.as_bytes(), value.as_bytes()).unwrap();
        }
        assert_eq!((0..3).map(|index| info.nth_key(index).unwrap()).collect::<Vec<_>>(), [b"b", b"a", b"c"]);
        assert_eq!(info.get(b"b"), Ok(Some(&b"4"[..])));
        info.delete(b"a").unwrap();
        assert_eq!(info.nth_key(1), Ok(&b"c"[..]));
        assert_eq!(info.delete(b"a").unwrap_err().class(), MPI_ERR_INFO_NOKEY);
        assert_eq!(info.nth_key(2).unwrap_err().class(), MPI_ERR_ARG);
        assert_eq!(info.nth_key(-1).unwrap_err().class(), MPI_ERR_ARG);
    }

    #[test]
    fn lengths_are_enforced() {
        let mut info = Info::new();
        assert_eq!(info.set(b"", b"x").unwrap_err().class(), MPI_ERR_INFO_KEY);
        assert_eq!(info.set(&[b'k'; LONGEST_KEY_BYTES + 1], b"x").unwrap_err().class(), MPI_ERR_INFO_KEY);
        assert_eq!(info.set(b"k", &[b'v'; LONGEST_VALUE_BYTES + 1]).unwrap_err().class(), MPI_ERR_INFO_VALUE);
        info.set(&[b'k'; LONGEST_KEY_BYTES], &[b'v'; LONGEST_VALUE_BYTES]).unwrap();
        assert_eq!(info.len(), 1);
    }
}
