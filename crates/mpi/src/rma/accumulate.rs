//! Accumulates (MPI 5.0, sections 12.3.3 and 12.3.4): updates of a target's memory, under its update lock.

use super::transfer::{Place, Spot, copy, packed, require_room};
use super::{Reach, Target, Window, errand};
use crate::constants::*;
use crate::datatype::{Buffer, Datatype};
use crate::op::Op;
use crate::process::Process;
use crate::{Error, Result};
use parnass_base::{Scratch, UserAddress};
use parnass_counters::WINDOW_ACCUMULATES;
use parnass_datatype::{Operand, Operator, combine_word};
use parnass_portals::Update;
use std::sync::Arc;

/// What an accumulate does to every element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combination<'a> {
    pub operator: Operator,
    pub operand: Operand,
    /// The predefined datatype that the data is made of.
    basic: &'a Arc<Datatype>,
}

impl<'a> Combination<'a> {
    pub fn new(op: &Op, datatype: &'a Arc<Datatype>) -> Result<Combination<'a>> {
        let operator = op.operator().ok_or_else(|| {
            Error::new(
                MPI_ERR_OP,
                "op was made by MPI_Op_create; accumulates take predefined operations only (MPI_SUM, MPI_REPLACE, ...)",
            )
        })?;
        let basic = datatype.basic().ok_or_else(|| {
            Error::new(
                MPI_ERR_TYPE,
                format!(
                    "the datatype {} is made of several predefined datatypes; accumulates take datatypes that are made of one",
                    datatype.description()
                ),
            )
        })?;
        match basic.operand() {
            Some(operand) if operator.accepts(operand) => Ok(Combination { operator, operand, basic }),
            _ => Err(op.undefined_on(basic)),
        }
    }

    /// Whether the elements stand in memory as they do in a packed stream.
    fn is_dense(&self) -> bool {
        u64::from(self.operand.extent()) == self.basic.layout().size()
    }

    /// Combines `length` bytes of elements that stand in memory without gaps.
    #[inline]
    fn apply(&self, input: UserAddress, inout: UserAddress, length: u64) {
        let count = length / u64::from(self.operand.extent());
        let accepted = parnass_datatype::reduce(self.operator, self.operand, input, inout, count);
        debug_assert!(accepted, "checked when the combination was made");
    }

    /// Combines `length` bytes of two packed streams.
    fn apply_packed(&self, input: UserAddress, inout: UserAddress, length: u64) {
        if self.is_dense() {
            return self.apply(input, inout, length);
        }
        let layout = self.basic.layout();
        let count = length / layout.size();
        let bytes = count * u64::from(self.operand.extent());
        let (left, right) = (Scratch::new(bytes as usize), Scratch::new(bytes as usize));
        layout.unpack(count, left.address(), 0, input, length);
        layout.unpack(count, right.address(), 0, inout, length);
        self.apply(left.address(), right.address(), bytes);
        layout.pack(count, right.address(), 0, inout, length);
    }
}

/// Bytes of the elements that are compared and swapped as one word.
const WORD: usize = size_of::<u64>();

/// Combines `count` elements, `length` bytes, that stand in memory without gaps and on which the operator is defined.
#[inline(always)]
fn combine_plain(
    operator: Operator,
    operand: Operand,
    input: UserAddress,
    inout: UserAddress,
    length: usize,
    count: u64,
) {
    if operator == Operator::Nothing {
        return;
    }
    if length == WORD
        && let Some(word) = combine_word(operator, operand, input.read_word(), inout.read_word())
    {
        return inout.write_word(word);
    }
    let accepted = parnass_datatype::reduce(operator, operand, input, inout, count);
    debug_assert!(accepted, "the operator is defined on the elements");
}

impl Window {
    fn update_of(&self, target: &Target, rank: i32) -> Result<Update<'_>> {
        match target.member {
            Some(member) => Ok(self.segment.update(member)),
            None => Err(self.unreachable(rank)),
        }
    }

    /// MPI_Accumulate; with a `result` also MPI_Get_accumulate, which tells what was there before.
    #[inline(always)]
    pub fn accumulate(
        &self,
        process: &Process,
        origin: &Buffer<'_>,
        result: Option<&Buffer<'_>>,
        place: &Place<'_>,
        op: &Op,
    ) -> Result<()> {
        let Some(target) = self.target(place.rank)? else { return Ok(()) };
        process.counters().count(WINDOW_ACCUMULATES, 1);
        if let (Some(operator), Some(operand)) = (op.operator(), place.datatype.operand())
            && let (Some((there, length)), Some(member)) = (self.plain(target, place), target.member)
            && origin.datatype.plain_length(origin.count) == Some(length)
            && result.is_none_or(|result| result.datatype.plain_length(result.count) == Some(length))
            && operator.accepts(operand)
        {
            let _update = self.segment.update(member);
            if let Some(result) = result {
                copy(result.address, there, length);
            }
            combine_plain(operator, operand, origin.address, there, length, place.count);
            return Ok(());
        }
        self.accumulate_any(process, target, (origin, result), place, op)
    }

    /// As [`Window::accumulate`], wherever the data is and whatever it looks like.
    #[inline(never)]
    fn accumulate_any(
        &self,
        process: &Process,
        target: &Target,
        (origin, result): (&Buffer<'_>, Option<&Buffer<'_>>),
        place: &Place<'_>,
        op: &Op,
    ) -> Result<()> {
        let length = place.size();
        // Programs ask with no data at all whether there is such a call, and with any datatype.
        if length == 0 && origin.size() == 0 {
            return Ok(());
        }
        let combination = Combination::new(op, place.datatype)?;
        // The origin is not looked at by an operation that changes nothing.
        let reads = combination.operator != Operator::Nothing;
        if reads {
            require_room("target", length, "origin", origin.size())?;
            require_room("origin", origin.size(), "target", length)?;
        }
        if let Some(result) = result {
            require_room("target", length, "result", result.size())?;
        }
        if length == 0 {
            return Ok(());
        }
        let data;
        let input = match origin.contiguous() {
            _ if !reads => UserAddress::NULL,
            Some(address) => address,
            None => {
                data = packed(origin);
                data.address()
            }
        };
        if target.reach == Reach::None {
            return self.far_update(process, target, (input, result), place, (op, combination.basic));
        }
        let spot = self.spot(target, place)?;
        let update = self.update_of(target, place.rank)?;
        if let Some(result) = result.map_or(Some(UserAddress::NULL), |result| result.contiguous())
            && errand::combine(process, &spot, &combination, input, result)
        {
            return Ok(());
        }
        let old = update_spot(process, &spot, &combination, input, length, result)?;
        drop(update);
        if let (Some(result), Some(old)) = (result, old) {
            result.datatype.layout().unpack(result.count, result.address, 0, old.address(), length);
        }
        Ok(())
    }

    /// MPI_Fetch_and_op.
    #[inline(always)]
    pub fn fetch_and_op(
        &self,
        process: &Process,
        origin: UserAddress,
        result: UserAddress,
        place: &Place<'_>,
        op: &Op,
    ) -> Result<()> {
        require_predefined(place.datatype)?;
        let origin = Buffer::new(origin, 1, place.datatype);
        let result = Buffer::new(result, 1, place.datatype);
        self.accumulate(process, &origin, Some(&result), place, op)
    }

    /// MPI_Compare_and_swap.
    #[inline(always)]
    pub fn compare_and_swap(
        &self,
        process: &Process,
        origin: UserAddress,
        compare: UserAddress,
        result: UserAddress,
        place: &Place<'_>,
    ) -> Result<()> {
        let Some(target) = self.target(place.rank)? else { return Ok(()) };
        process.counters().count(WINDOW_ACCUMULATES, 1);
        require_comparable(place.datatype)?;
        if let (Some((there, WORD)), Some(member)) = (self.plain(target, place), target.member) {
            let expected = compare.read_word();
            let update = self.segment.update(member);
            let old = there.read_word();
            if old == expected {
                there.write_word(origin.read_word());
            }
            drop(update);
            result.write_word(old);
            return Ok(());
        }
        self.compare_and_swap_any(process, target, (origin, compare, result), place)
    }

    /// As [`Window::compare_and_swap`], wherever the element is and however long.
    #[inline(never)]
    fn compare_and_swap_any(
        &self,
        process: &Process,
        target: &Target,
        (origin, compare, result): (UserAddress, UserAddress, UserAddress),
        place: &Place<'_>,
    ) -> Result<()> {
        let length = place.size();
        if target.reach == Reach::None {
            let data = Scratch::new(2 * length as usize);
            data.address().copy_apart(compare, length as usize);
            data.address().offset(length as i64).copy_apart(origin, length as usize);
            return self.far_swap(process, target, &data, result, place);
        }
        let spot = self.spot(target, place)?;
        let (mut old, mut expected) = ([0; 16], [0; 16]);
        let bytes = length as usize;
        compare.read(&mut expected[..bytes]);
        let update = self.update_of(target, place.rank)?;
        if errand::swap(process, &spot, origin, compare, result) {
            return Ok(());
        }
        match spot.contiguous() {
            Some(address) if spot.direct => address.read(&mut old[..bytes]),
            _ => {
                let seen = Scratch::new(bytes);
                spot.read(process, seen.address(), length)?;
                seen.address().read(&mut old[..bytes]);
            }
        }
        if old == expected {
            spot.write(process, origin, length)?;
        }
        drop(update);
        result.write(&old[..bytes]);
        Ok(())
    }
}

/// One update, under the lock. The old data, if it is asked for and did not go to its place at once.
pub(super) fn update_spot(
    process: &Process,
    spot: &Spot<'_>,
    combination: &Combination<'_>,
    input: UserAddress,
    length: u64,
    result: Option<&Buffer<'_>>,
) -> Result<Option<Scratch>> {
    // What was there.
    let mut old = None;
    if let Some(result) = result {
        match result.contiguous() {
            Some(address) => spot.read(process, address, length)?,
            None => {
                let data = Scratch::new(length as usize);
                spot.read(process, data.address(), length)?;
                old = Some(data);
            }
        }
    }
    match (combination.operator, spot.contiguous()) {
        (Operator::Nothing, _) => {}
        (Operator::Replace, _) => spot.write(process, input, length)?,
        (_, Some(address)) if spot.direct && combination.is_dense() => {
            combination.apply(input, address, length);
        }
        _ => {
            let data = Scratch::new(length as usize);
            match (&old, result.and_then(|result| result.contiguous())) {
                // Nothing is read twice: where the kernel does it, that is most of the time.
                (Some(old), _) => data.address().copy_apart(old.address(), length as usize),
                (None, Some(result)) => data.address().copy_apart(result, length as usize),
                (None, None) => spot.read(process, data.address(), length)?,
            }
            combination.apply_packed(input, data.address(), length);
            spot.write(process, data.address(), length)?;
        }
    }
    Ok(old)
}

#[inline(always)]
fn require_predefined(datatype: &Datatype) -> Result<()> {
    if datatype.operand().is_some() { Ok(()) } else { Err(not_predefined(datatype)) }
}

#[cold]
fn not_predefined(datatype: &Datatype) -> Error {
    Error::new(
        MPI_ERR_TYPE,
        format!(
            "the datatype {} is not predefined; MPI_Fetch_and_op takes predefined ones, MPI_Get_accumulate others too",
            datatype.description()
        ),
    )
}

/// MPI_Compare_and_swap is for integers, logicals and bytes.
#[inline(always)]
fn require_comparable(datatype: &Datatype) -> Result<()> {
    use parnass_datatype::Family;
    match datatype.operand() {
        Some(Operand::One(element))
            if matches!(element.family(), Family::Integer | Family::Logical | Family::Byte) =>
        {
            Ok(())
        }
        _ => Err(not_comparable(datatype)),
    }
}

#[cold]
fn not_comparable(datatype: &Datatype) -> Error {
    Error::new(
        MPI_ERR_TYPE,
        format!(
            "the datatype {} cannot be compared and swapped; use one of integers, logicals or bytes",
            datatype.description()
        ),
    )
}

impl Datatype {
    /// The one predefined datatype that all of it is made of; none if there are several, or no data.
    pub fn basic(self: &Arc<Self>) -> Option<&Arc<Datatype>> {
        if self.operand().is_some() {
            return Some(self);
        }
        let mut found: Option<&Arc<Datatype>> = None;
        let mut left: Vec<&Arc<Datatype>> = self.recipe().datatypes.iter().collect();
        while let Some(datatype) = left.pop() {
            match (datatype.operand(), found) {
                (Some(operand), Some(other)) if other.operand() != Some(operand) => return None,
                (Some(_), _) => found = Some(datatype),
                (None, _) => left.extend(&datatype.recipe().datatypes),
            }
        }
        found
    }
}
