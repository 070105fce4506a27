//! Short updates of memory that only its own process has in its address space, carried out by that process while it waits.
//! Whoever asks holds the update lock of the target, as for any update.

use super::accumulate::Combination;
use super::transfer::Spot;
use crate::process::Process;
use parnass_base::lane::{read_words, write_words};
use parnass_base::{Scratch, UserAddress};
use parnass_datatype::{Element, Operand, Operator, combine_word, reduce};
use parnass_portals::UpdateWords;

/// The longest data of an update, in bytes: a swap has two.
const MOST: usize = size_of::<UpdateWords>() / 2;
const WORD: usize = size_of::<u64>();
/// The code of a swap. That of a combination is its operator, and above [`ELEMENT_SHIFT`] its element.
const SWAP: u32 = u32::MAX;
const ELEMENT_SHIFT: u32 = 8;

/// Where a short update takes place and its length, if the target can be asked for it.
#[inline]
fn short(spot: &Spot<'_>) -> Option<(UserAddress, usize)> {
    let length = spot.datatype.plain_length(spot.count).filter(|length| spot.asked && *length <= MOST)?;
    Some((spot.contiguous()?, length))
}

/// Has the target combine what is at `input`; what was there before comes to `result`, unless that is null. `false`: that cannot be asked for.
#[inline]
pub(super) fn combine(
    process: &Process,
    spot: &Spot<'_>,
    combination: &Combination<'_>,
    input: UserAddress,
    result: UserAddress,
) -> bool {
    let Operand::One(element) = combination.operand else { return false };
    let Some((there, length)) = short(spot) else { return false };
    let [low, high] = match input {
        UserAddress::NULL => [0; 2],
        input => read_words(input, length),
    };
    let code = combination.operator as u32 | (element as u32) << ELEMENT_SHIFT;
    let nic = process.nic();
    let Some(words) = nic.ask_update(spot.target.process, code, there, length, [low, high, 0, 0]) else {
        return false;
    };
    if result != UserAddress::NULL {
        write_words(&words, result, length);
    }
    true
}

/// Has the target write what is at `origin` if it has what is at `compare`; what was there before comes to `result`. `false`: that cannot be asked for.
#[inline]
pub(super) fn swap(
    process: &Process,
    spot: &Spot<'_>,
    origin: UserAddress,
    compare: UserAddress,
    result: UserAddress,
) -> bool {
    let Some((there, length)) = short(spot) else { return false };
    let ([first, second], [third, fourth]) = (read_words(origin, length), read_words(compare, length));
    let question = [first, second, third, fourth];
    let Some(words) = process.nic().ask_update(spot.target.process, SWAP, there, length, question) else {
        return false;
    };
    write_words(&words, result, length);
    true
}

/// At the target. What was there comes into the words.
pub(crate) fn carry_out(code: u32, address: UserAddress, length: usize, words: &mut UpdateWords) {
    let [first, second, third, fourth] = *words;
    let old: [u64; 2] = read_words(address, length);
    *words = [old[0], old[1], 0, 0];
    if code == SWAP {
        if old == [third, fourth] {
            write_words(&[first, second], address, length);
        }
        return;
    }
    let operator = Operator::from_number(code & ((1 << ELEMENT_SHIFT) - 1));
    let element = Element::ALL.get((code >> ELEMENT_SHIFT) as usize);
    let (Some(operator), Some(element)) = (operator, element) else { return };
    let operand = Operand::One(*element);
    match operator {
        Operator::Nothing => {}
        Operator::Replace => write_words(&[first, second], address, length),
        _ => {
            if length == WORD
                && let Some(word) = combine_word(operator, operand, first, old[0])
            {
                return address.write_word(word);
            }
            let input = Scratch::new(MOST);
            write_words(&[first, second], input.address(), length);
            let accepted = reduce(
                operator,
                operand,
                input.address(),
                address,
                length as u64 / u64::from(operand.extent()),
            );
            debug_assert!(accepted, "who asks has made sure that the operator is defined on the elements");
        }
    }
}
