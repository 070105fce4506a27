//! Datatypes (MPI 5.0, chapter 5): a layout, and what the program may know and set about it.

mod construct;
mod pack;
mod parameterised;
mod predefined;
mod rebuild;

pub use construct::{CountForm, DistributedDimension, Order};
pub use pack::{external_size, pack, pack_external, pack_size, unpack, unpack_external};
pub use parameterised::{ParameterisedDatatypes, match_size, value_index};
pub use predefined::{PredefinedDatatypes, handle};

use crate::attribute::AttributeStore;
use crate::constants::*;
use crate::{Error, Result};
use parnass_base::UserAddress;
use parnass_datatype::{Layout, Operand};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A buffer of a call: `count` elements of a datatype at an address.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'a> {
    pub address: UserAddress,
    pub count: u64,
    pub datatype: &'a Arc<Datatype>,
}

impl<'a> Buffer<'a> {
    /// A buffer.
    #[inline]
    pub fn new(address: UserAddress, count: u64, datatype: &'a Arc<Datatype>) -> Buffer<'a> {
        Buffer { address, count, datatype }
    }

    /// Bytes of data in it.
    #[inline]
    pub fn size(&self) -> u64 {
        self.count.saturating_mul(self.datatype.layout.size())
    }

    /// Where its data starts, if that is one run of bytes.
    #[inline]
    pub fn contiguous(&self) -> Option<UserAddress> {
        self.datatype.layout.contiguous(self.count).map(|offset| self.address.offset(offset))
    }
}

/// A datatype. Lives in an [`Arc`]: handles, operations and the types derived from it hold one.
pub struct Datatype {
    layout: Layout,
    /// As [`Datatype::identity`].
    identity: u64,
    /// As [`Layout::plain_size`].
    plain: u32,
    operand: Option<Operand>,
    /// Handle value of a predefined datatype.
    predefined: Option<usize>,
    /// Cannot be freed: predefined, or made by one of the parameterised constructors.
    permanent: bool,
    recipe: Recipe,
    committed: AtomicBool,
    /// MPI names no encoding.
    name: Mutex<Box<[u8]>>,
    attributes: AttributeStore,
}

/// How a datatype was made: what MPI_Type_get_envelope and MPI_Type_get_contents tell.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    /// One of `MPI_COMBINER_*`.
    pub combiner: i32,
    pub integers: Vec<i32>,
    pub addresses: Vec<i64>,
    /// Only of datatypes made by a large-count constructor.
    pub large_counts: Vec<i64>,
    pub datatypes: Vec<Arc<Datatype>>,
}

impl Datatype {
    /// A predefined datatype.
    fn named(handle: usize, name: &str, operand: Operand) -> Datatype {
        let layout = layout_of(operand);
        Datatype {
            identity: next_identity(),
            plain: layout.plain_size(),
            layout,
            operand: Some(operand),
            predefined: Some(handle),
            permanent: true,
            recipe: Recipe { combiner: MPI_COMBINER_NAMED, ..Recipe::default() },
            committed: AtomicBool::new(true),
            name: Mutex::new(name.as_bytes().into()),
            attributes: AttributeStore::new(),
        }
    }

    /// A derived datatype, not committed yet.
    fn derived(layout: Layout, recipe: Recipe) -> Arc<Datatype> {
        Arc::new(Datatype {
            identity: next_identity(),
            plain: layout.plain_size(),
            layout,
            operand: None,
            predefined: None,
            permanent: false,
            recipe,
            committed: AtomicBool::new(false),
            name: Mutex::default(),
            attributes: AttributeStore::new(),
        })
    }

    /// A number that no datatype of this process with another layout has, or has had; never 0.
    #[inline]
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    /// Where its bytes lie.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The length of so many items, if they are runs of bytes that follow each other from the buffer's address on; `None` if
    /// they are not, and where it is 0 or 4 GiB or more.
    #[inline(always)]
    pub fn plain_length(&self, count: u64) -> Option<usize> {
        let length = u32::try_from(count).ok()?.checked_mul(self.plain)?;
        (length > 0).then_some(length as usize)
    }

    /// What predefined reduction operators see in it; none for a derived datatype.
    #[inline]
    pub fn operand(&self) -> Option<Operand> {
        self.operand
    }

    /// The handle value, if it is predefined.
    #[inline]
    pub fn predefined(&self) -> Option<usize> {
        self.predefined
    }

    /// How it was made.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Its attributes.
    pub fn attributes(&self) -> &AttributeStore {
        &self.attributes
    }

    /// Whether it may be used in communication.
    #[inline]
    pub fn is_committed(&self) -> bool {
        self.committed.load(Ordering::Relaxed)
    }

    /// MPI_Type_commit. Nothing is left to do: the layout was compiled when the datatype was made.
    pub fn commit(&self) {
        self.committed.store(true, Ordering::Relaxed);
    }

    /// An error unless it may be used in communication.
    #[inline]
    pub fn require_committed(&self) -> Result<()> {
        if self.is_committed() { Ok(()) } else { Err(self.not_committed()) }
    }

    #[cold]
    fn not_committed(&self) -> Error {
        Error::new(
            MPI_ERR_TYPE,
            format!(
                "the datatype {} is not committed; call MPI_Type_commit before communicating with it",
                self.description()
            ),
        )
    }

    /// Whether it lives as long as the process: predefined, or made by one of the parameterised constructors.
    pub fn is_permanent(&self) -> bool {
        self.permanent
    }

    /// An error if it is permanent: such a datatype cannot be freed.
    pub fn require_mortal(&self) -> Result<()> {
        match self.permanent {
            false => Ok(()),
            true => Err(Error::new(
                MPI_ERR_TYPE,
                format!(
                    "the datatype {} is predefined and cannot be freed; free only what a constructor returned",
                    self.description()
                ),
            )),
        }
    }

    /// Its name: the standard's for a predefined datatype, empty for a derived one, until set.
    pub fn name(&self) -> Box<[u8]> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// MPI_Type_set_name. Names are cut to what MPI_MAX_OBJECT_NAME leaves room for.
    pub fn set_name(&self, name: &[u8]) {
        let end = name.len().min(MPI_MAX_OBJECT_NAME as usize - 1);
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name[..end].into();
    }

    /// MPI_Get_count: how many whole copies `bytes` of data are; `None` if they are not whole (MPI_UNDEFINED).
    pub fn count_in(&self, bytes: u64) -> Option<i64> {
        match self.layout.size() {
            0 => (bytes == 0).then_some(0),
            size => bytes.is_multiple_of(size).then_some((bytes / size) as i64),
        }
    }

    /// MPI_Get_elements: how many basic elements `bytes` of data are; `None` if the last is not whole (MPI_UNDEFINED).
    pub fn elements_in(&self, bytes: u64) -> Option<i64> {
        match self.layout.signature().elements_in(bytes) {
            (elements, 0) => Some(elements as i64),
            _ => None,
        }
    }

    /// MPI_Status_set_elements: the bytes of data that `elements` basic elements are.
    pub fn bytes_of_elements(&self, elements: i64) -> Result<u64> {
        let bytes =
            u64::try_from(elements).ok().and_then(|elements| self.layout.signature().bytes_of(elements));
        bytes.ok_or_else(|| {
            let message = format!(
                "count is {elements}; the datatype {} cannot have so many elements",
                self.description()
            );
            Error::new(MPI_ERR_COUNT, message)
        })
    }

    /// For messages: its name, or how it was made.
    pub fn description(&self) -> String {
        let name = self.name();
        if !name.is_empty() {
            return String::from_utf8_lossy(&name).into_owned();
        }
        format!(
            "(unnamed, made by {}, {} bytes)",
            construct::constructor_name(self.recipe.combiner),
            self.layout.size()
        )
    }
}

impl Drop for Datatype {
    /// Ends a long chain of types, each derived from the one before, without recursion.
    fn drop(&mut self) {
        let mut ending = std::mem::take(&mut self.recipe.datatypes);
        while let Some(datatype) = ending.pop() {
            if let Some(mut last) = Arc::into_inner(datatype) {
                ending.append(&mut last.recipe.datatypes);
            }
        }
    }
}

impl fmt::Debug for Datatype {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Datatype {} {:?}", self.description(), self.layout)
    }
}

fn next_identity() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// The layout of a predefined datatype.
fn layout_of(operand: Operand) -> Layout {
    match operand {
        Operand::One(element) => Layout::element(element),
        Operand::Pair { value, index } => {
            let offset = Operand::index_offset(value, index) as i64;
            let (value, index) = (Layout::element(value), Layout::element(index));
            Layout::structure([(1, 0, &value), (1, offset, &index)].into_iter()).expect("a pair is small")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_chain_of_types_ends_without_recursion() {
        let predefined = PredefinedDatatypes::default();
        let mut datatype = Datatype::contiguous(CountForm::Int, 1, predefined.int()).unwrap();
        for _ in 0..200_000 {
            datatype = Datatype::contiguous(CountForm::Int, 1, &datatype).unwrap();
        }
        assert_eq!(datatype.layout().size(), 4);
        drop(datatype);
    }

    #[test]
    fn contents_stand_where_the_form_says() {
        let predefined = PredefinedDatatypes::default();
        let int = predefined.int();
        let small = Datatype::hindexed(CountForm::Int, &[2, 1], &[0, 100], int).unwrap();
        assert_eq!(
            (&small.recipe().integers[..], &small.recipe().addresses[..]),
            (&[2, 2, 1][..], &[0, 100][..])
        );
        assert!(small.recipe().large_counts.is_empty());
        let large = Datatype::hindexed(CountForm::Large, &[2, 1], &[0, 100], int).unwrap();
        assert_eq!(large.recipe().large_counts, [2, 2, 1, 0, 100]);
        assert!(large.recipe().integers.is_empty() && large.recipe().addresses.is_empty());
        let array =
            Datatype::subarray(CountForm::Large, &[4, 5], &[2, 3], &[0, 1], MPI_ORDER_C, int).unwrap();
        assert_eq!(array.recipe().integers, [2, MPI_ORDER_C]);
        assert_eq!(array.recipe().large_counts, [4, 5, 2, 3, 0, 1]);
    }

    #[test]
    fn counts_of_what_was_received() {
        let predefined = PredefinedDatatypes::default();
        let types = [predefined.int().clone(), predefined.get(0x214).unwrap().clone()];
        let pair = Datatype::structure(CountForm::Int, &[1, 1], &[0, 8], &types).unwrap();
        assert_eq!((pair.count_in(24), pair.elements_in(24)), (Some(2), Some(4)));
        assert_eq!((pair.count_in(16), pair.elements_in(16)), (None, Some(3)));
        assert_eq!((pair.count_in(13), pair.elements_in(13)), (None, None));
        assert_eq!(pair.bytes_of_elements(3).unwrap(), 16);
        assert!(pair.bytes_of_elements(-1).is_err());
        let nothing = Datatype::contiguous(CountForm::Int, 0, predefined.int()).unwrap();
        assert_eq!((nothing.count_in(0), nothing.elements_in(0)), (Some(0), Some(0)));
    }

    #[test]
    fn wrong_arguments_say_which() {
        let predefined = PredefinedDatatypes::default();
        let int = predefined.int();
        let text = |result: Result<Arc<Datatype>>| result.unwrap_err().message().to_owned();
        assert!(text(Datatype::contiguous(CountForm::Int, -1, int)).contains("count is -1"));
        assert!(
            text(Datatype::indexed(CountForm::Int, &[1, -2], &[0, 0], int))
                .contains("array_of_blocklengths[1] is -2")
        );
        let part = |sub, start| Datatype::subarray(CountForm::Int, &[4], &[sub], &[start], MPI_ORDER_C, int);
        assert!(text(part(5, 0)).contains("1 to 4"));
        assert!(text(part(3, 2)).contains("0 to 1"));
        assert!(text(Datatype::contiguous(CountForm::Large, i64::MAX, int)).contains("2^63"));
        let one =
            DistributedDimension { size: 8, distribution: MPI_DISTRIBUTE_BLOCK, argument: 3, processes: 2 };
        assert!(
            text(Datatype::darray(CountForm::Int, 2, 0, &[one], MPI_ORDER_C, int)).contains("at least 4")
        );
        assert!(text(Datatype::darray(CountForm::Int, 3, 0, &[one], MPI_ORDER_C, int)).contains("grid of 3"));
    }
}
