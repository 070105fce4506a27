//! Attributes: values that programs cache on communicators, datatypes and windows (MPI 5.0, section 7.7).
//!
//! A value is a machine word; what it means is the program's. Callbacks are boxed by the C interface and
//! get the object's `handle`: the name by which the program knows the object, opaque here.

use crate::constants::{MPI_ERR_ARG, MPI_ERR_KEYVAL};
use crate::{Error, Result};
use parnass_base::guarded::{Guard, Guarded};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The kind of object that a keyval is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    Communicator,
    Datatype,
    Window,
}

/// The handle of an object as the program knows it, given through to callbacks.
pub type ObjectHandle = usize;

/// Asked when an object is duplicated, with (handle of the old object, number of the keyval, value): the value
/// that the new object gets, or `None` if it gets none.
pub type CopyCallback = dyn Fn(ObjectHandle, i32, usize) -> Result<Option<usize>> + Send + Sync;

/// Told when an attribute is deleted, with (handle of the object, number of the keyval, value).
pub type DeleteCallback = dyn Fn(ObjectHandle, i32, usize) -> Result<()> + Send + Sync;

/// What becomes of an attribute when its object is duplicated.
pub enum CopyRule {
    /// MPI_COMM_NULL_COPY_FN: the new object has no such attribute.
    Never,
    /// MPI_COMM_DUP_FN: the new object has the same value.
    Same,
    /// The program decides.
    Call(Box<CopyCallback>),
}

/// What is done when an attribute is deleted.
pub enum DeleteRule {
    /// MPI_COMM_NULL_DELETE_FN.
    Nothing,
    /// The program is told.
    Call(Box<DeleteCallback>),
}

/// A key under which attributes are cached. It lives as long as an attribute uses it, also after it was freed.
pub struct Keyval {
    kind: ObjectKind,
    number: i32,
    copy: CopyRule,
    delete: DeleteRule,
}

impl Keyval {
    /// The kind of object it is for.
    pub fn kind(&self) -> ObjectKind {
        self.kind
    }

    /// The number by which the program knows it.
    pub fn number(&self) -> i32 {
        self.number
    }
}

impl std::fmt::Debug for Keyval {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "keyval {} ({:?})", self.number, self.kind)
    }
}

/// What a number stands for.
enum Slot {
    InUse(Arc<Keyval>),
    /// Freed by the program. The key is there as long as an attribute under it is (MPI 5.0, section 7.7.2).
    Freed(Weak<Keyval>),
}

/// The keyvals of a process, by number.
#[derive(Default)]
pub struct Keyvals {
    /// Number minus [`Keyvals::FIRST`] is the index. Numbers are not given out again: a stale number stays an error.
    table: Mutex<Vec<Slot>>,
}

impl Keyvals {
    /// Above every predefined key of the ABI.
    const FIRST: i32 = 4096;

    /// No keyvals.
    pub const fn new() -> Keyvals {
        Keyvals { table: Mutex::new(Vec::new()) }
    }

    /// MPI_Comm_create_keyval and its siblings: returns the new number.
    pub fn create(&self, kind: ObjectKind, copy: CopyRule, delete: DeleteRule) -> i32 {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let number = Self::FIRST + table.len() as i32;
        table.push(Slot::InUse(Arc::new(Keyval { kind, number, copy, delete })));
        number
    }

    /// The keyval with this number, which must be for `kind`. One that was freed is found while attributes under it are left,
    /// so that a program which has kept the number can read and delete them.
    pub fn find(&self, kind: ObjectKind, number: i32) -> Result<Arc<Keyval>> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = number.checked_sub(Self::FIRST).and_then(|index| table.get(usize::try_from(index).ok()?));
        let keyval = match slot {
            Some(Slot::InUse(keyval)) => keyval.clone(),
            Some(Slot::Freed(keyval)) => keyval.upgrade().ok_or_else(|| {
                Error::new(MPI_ERR_KEYVAL, format!("key {number} has been freed; create a new one"))
            })?,
            None => {
                return Err(Error::new(
                    MPI_ERR_KEYVAL,
                    format!(
                        "{number} is not a key; use what MPI_Comm_create_keyval or its siblings returned"
                    ),
                ));
            }
        };
        if keyval.kind != kind {
            return Err(Error::new(
                MPI_ERR_KEYVAL,
                format!(
                    "key {number} was created for a {}, not for a {}; use the key with the kind of object it was created for",
                    name_of(keyval.kind),
                    name_of(kind)
                ),
            ));
        }
        Ok(keyval)
    }

    /// MPI_Comm_free_keyval and its siblings. Attributes under it stay until they are deleted; until then it may be freed again.
    pub fn free(&self, kind: ObjectKind, number: i32) -> Result<()> {
        if (1..Self::FIRST).contains(&number) {
            return Err(Error::new(
                MPI_ERR_KEYVAL,
                format!("key {number} is predefined and cannot be freed"),
            ));
        }
        let keyval = self.find(kind, number)?;
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table[(number - Self::FIRST) as usize] = Slot::Freed(Arc::downgrade(&keyval));
        Ok(())
    }
}

fn name_of(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Communicator => "communicator",
        ObjectKind::Datatype => "datatype",
        ObjectKind::Window => "window",
    }
}

/// The attributes of one object, in the order in which they were set. No lock is held while a callback runs.
#[derive(Default)]
pub struct AttributeStore {
    entries: Guarded<Vec<(Arc<Keyval>, usize)>>,
}

impl AttributeStore {
    /// No attributes.
    pub const fn new() -> AttributeStore {
        AttributeStore { entries: Guarded::new(Vec::new()) }
    }

    fn entries(&self) -> Guard<'_, Vec<(Arc<Keyval>, usize)>> {
        self.entries.lock()
    }

    /// The value under a key, if one is set.
    pub fn get(&self, keyval: &Keyval) -> Option<usize> {
        self.get_numbered(keyval.number)
    }

    /// The value under the key with this number, if one is set: then there is such a key, and it is for this kind of object.
    pub fn get_numbered(&self, number: i32) -> Option<usize> {
        self.entries().iter().find(|(key, _)| key.number == number).map(|&(_, value)| value)
    }

    /// Sets a value. One that was there is deleted first, with its callback; if that fails nothing changes.
    pub fn set(&self, handle: ObjectHandle, keyval: &Arc<Keyval>, value: usize) -> Result<()> {
        let old = self.get(keyval);
        if let Some(old) = old {
            run_delete(keyval, handle, old)?;
        }
        let mut entries = self.entries();
        entries.retain(|(key, _)| key.number != keyval.number);
        entries.push((keyval.clone(), value));
        Ok(())
    }

    /// Deletes the value under a key, with its callback. If the callback fails, or there is no value, nothing changes.
    pub fn delete(&self, handle: ObjectHandle, keyval: &Keyval) -> Result<()> {
        let value = self.get(keyval).ok_or_else(|| {
            Error::new(
                MPI_ERR_ARG,
                format!(
                    "the object has no attribute under key {}; set one before deleting it",
                    keyval.number
                ),
            )
        })?;
        run_delete(keyval, handle, value)?;
        self.entries().retain(|(key, _)| key.number != keyval.number);
        Ok(())
    }

    /// Deletes all, the last set first (MPI 5.0, section 11.2.2 asks this for MPI_COMM_SELF at finalize). Stops at
    /// the first callback that fails: that attribute and the earlier ones stay.
    pub fn delete_all(&self, handle: ObjectHandle) -> Result<()> {
        loop {
            // A callback may set or delete attributes, so look anew each time.
            let last = self.entries().last().cloned();
            let Some((keyval, value)) = last else { return Ok(()) };
            run_delete(&keyval, handle, value)?;
            self.entries().retain(|(key, _)| key.number != keyval.number);
        }
    }

    /// What a duplicate of the object named `handle` gets, by the rules of the keys. When a copy callback fails,
    /// the attributes already copied are dropped, without delete callbacks since no object has held them.
    pub fn copy(&self, handle: ObjectHandle) -> Result<AttributeStore> {
        let entries = self.entries().clone();
        let mut copies = Vec::with_capacity(entries.len());
        for (keyval, value) in entries {
            let copy = match &keyval.copy {
                CopyRule::Never => None,
                CopyRule::Same => Some(value),
                CopyRule::Call(callback) => callback(handle, keyval.number, value)?,
            };
            if let Some(value) = copy {
                copies.push((keyval, value));
            }
        }
        Ok(AttributeStore { entries: Guarded::new(copies) })
    }

    /// How many attributes are set.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether none is set.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }
}

impl std::fmt::Debug for AttributeStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.entries().iter()).finish()
    }
}

fn run_delete(keyval: &Keyval, handle: ObjectHandle, value: usize) -> Result<()> {
    match &keyval.delete {
        DeleteRule::Nothing => Ok(()),
        DeleteRule::Call(callback) => callback(handle, keyval.number, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Log = Arc<Mutex<Vec<(usize, i32, usize)>>>;

    fn logging_delete(log: &Log) -> DeleteRule {
        let log = log.clone();
        DeleteRule::Call(Box::new(move |handle, number, value| {
            log.lock().unwrap().push((handle, number, value));
            if value == 13 { Err(Error::new(77, "13 refuses")) } else { Ok(()) }
        }))
    }

    #[test]
    fn deletion_runs_backwards_and_stops_at_a_failure() {
        let keyvals = Keyvals::default();
        let log = Log::default();
        let store = AttributeStore::new();
        let numbers: Vec<i32> = (0..4)
            .map(|_| keyvals.create(ObjectKind::Communicator, CopyRule::Never, logging_delete(&log)))
            .collect();
        for (&number, value) in numbers.iter().zip([10, 13, 12, 11]) {
            let keyval = keyvals.find(ObjectKind::Communicator, number).unwrap();
            store.set(5, &keyval, value).unwrap();
        }
        assert_eq!(store.delete_all(5).unwrap_err().class(), 77);
        assert_eq!(*log.lock().unwrap(), [(5, numbers[3], 11), (5, numbers[2], 12), (5, numbers[1], 13)]);
        assert_eq!(store.len(), 2);
    }

    #[test]
    fn copies_follow_the_rule_of_the_key() {
        let keyvals = Keyvals::default();
        let store = AttributeStore::new();
        let double = CopyRule::Call(Box::new(|_, _, value| Ok((value != 1).then_some(value * 2))));
        let rules = [(CopyRule::Never, 7), (CopyRule::Same, 8), (double, 9)];
        let mut keys = Vec::new();
        for (rule, value) in rules {
            let number = keyvals.create(ObjectKind::Datatype, rule, DeleteRule::Nothing);
            let keyval = keyvals.find(ObjectKind::Datatype, number).unwrap();
            store.set(0, &keyval, value).unwrap();
            keys.push(keyval);
        }
        let copy = store.copy(0).unwrap();
        assert_eq!(keys.iter().map(|key| copy.get(key)).collect::<Vec<_>>(), [None, Some(8), Some(18)]);
        store.set(0, &keys[2], 1).unwrap();
        assert_eq!(store.copy(0).unwrap().get(&keys[2]), None);
    }

    #[test]
    fn a_freed_key_lives_as_long_as_its_attributes() {
        let keyvals = Keyvals::default();
        let log = Log::default();
        let number = keyvals.create(ObjectKind::Communicator, CopyRule::Same, logging_delete(&log));
        let find = || keyvals.find(ObjectKind::Communicator, number);
        let store = AttributeStore::new();
        store.set(1, &find().unwrap(), 42).unwrap();
        keyvals.free(ObjectKind::Communicator, number).unwrap();
        let copy = store.copy(1).unwrap();
        copy.delete_all(2).unwrap();
        assert_eq!(store.get(&find().unwrap()), Some(42));
        keyvals.free(ObjectKind::Communicator, number).unwrap();
        store.delete(1, &find().unwrap()).unwrap();
        assert_eq!(*log.lock().unwrap(), [(2, number, 42), (1, number, 42)]);
        assert_eq!(find().unwrap_err().class(), MPI_ERR_KEYVAL);
        assert_eq!(keyvals.free(ObjectKind::Communicator, number).unwrap_err().class(), MPI_ERR_KEYVAL);
    }

    #[test]
    fn keys_of_another_kind_and_predefined_keys_are_refused() {
        let keyvals = Keyvals::default();
        let number = keyvals.create(ObjectKind::Datatype, CopyRule::Same, DeleteRule::Nothing);
        let error = keyvals.find(ObjectKind::Communicator, number).unwrap_err();
        assert!(error.message().contains("created for a datatype"), "{error}");
        for wrong in [0, 501, -5, i32::MIN, i32::MAX, number + 1] {
            assert_eq!(keyvals.free(ObjectKind::Communicator, wrong).unwrap_err().class(), MPI_ERR_KEYVAL);
        }
    }
}
