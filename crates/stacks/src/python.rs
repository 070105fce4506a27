//! Which functions of a Python program a thread is in: read in the memory of its interpreter, CPython 3.11 to 3.13.
//!
//! Where things lie there is not part of what CPython promises. From 3.13 on it says so itself, at the begin of its state; before, it has stayed the
//! same within 3.11 and within 3.12. What is read may be changing, or be none of it: nothing is believed to end, or to be long.

use crate::Place;
use crate::memory::Memory;

/// Where the interpreter has what is read here: of each record, where a field begins in it, in bytes.
#[derive(Clone, Copy, Debug)]
struct Offsets {
    first_interpreter: u64,
    next_interpreter: u64,
    first_thread: u64,
    next_thread: u64,
    thread_number: u64,
    /// Of a thread; its frame, or what has it at the second one.
    frame: (u64, Option<u64>),
    code: u64,
    instruction: u64,
    previous: u64,
    owner: u64,
    file: u64,
    name: u64,
    lines: u64,
    first_line: u64,
    instructions: u64,
    bytes_length: u64,
    bytes: u64,
    text_length: u64,
    text_state: u64,
    /// The characters of a string, if all are of ASCII, and if not.
    text: (u64, u64),
}

const PYTHON_3_11: Offsets = Offsets {
    first_interpreter: 40,
    next_interpreter: 0,
    first_thread: 16,
    next_thread: 8,
    thread_number: 160,
    frame: (56, Some(8)),
    code: 32,
    instruction: 56,
    previous: 48,
    owner: 69,
    file: 112,
    name: 128,
    lines: 136,
    first_line: 72,
    instructions: 184,
    bytes_length: 16,
    bytes: 32,
    text_length: 16,
    text_state: 32,
    text: (48, 72),
};

const PYTHON_3_12: Offsets = Offsets {
    first_thread: 72,
    thread_number: 144,
    frame: (56, Some(0)),
    code: 0,
    previous: 8,
    owner: 70,
    first_line: 68,
    instructions: 192,
    text: (40, 56),
    ..PYTHON_3_11
};

/// Whoever has a frame that is none of a function: the loop of the interpreter itself.
const OWNED_BY_C: u8 = 3;
/// Of the state of a string: whether its characters follow it, and are all of ASCII.
const COMPACT: u32 = 1 << 5;
const ASCII: u32 = 1 << 6;
/// What is read at most: interpreters and threads, frames of one, characters of a name, bytes of a table of lines.
const THREADS: usize = 1024;
const FRAMES: usize = 64;
const NAME: u64 = 4096;
const LINES: u64 = 1 << 20;

/// The interpreter of a process.
#[derive(Clone, Copy, Debug)]
pub struct Python {
    runtime: u64,
    offsets: Offsets,
}

impl Python {
    /// The interpreter whose symbols `_PyRuntime` and `Py_Version` lie at these addresses; `None` if its version is none that is known here.
    pub fn at(memory: &Memory, runtime: u64, version: u64) -> Option<Python> {
        let offsets = match memory.word(version)? >> 16 {
            0x30b => PYTHON_3_11,
            0x30c => PYTHON_3_12,
            0x30d => told(memory, runtime)?,
            _ => return None,
        };
        Some(Python { runtime, offsets })
    }

    /// The functions that a thread is in, innermost first; none if it runs no Python.
    pub fn places(&self, memory: &Memory, thread: i32) -> Vec<Place> {
        let frame = self.frame_of(memory, thread).unwrap_or(0);
        chained(memory, frame, self.offsets.previous)
            .take(FRAMES)
            .map_while(|frame| Some((frame, memory.byte(frame + self.offsets.owner)?)))
            .filter(|&(_, owner)| owner < OWNED_BY_C)
            .filter_map(|(frame, _)| self.place(memory, frame))
            .collect()
    }

    fn frame_of(&self, memory: &Memory, thread: i32) -> Option<u64> {
        let offsets = &self.offsets;
        let first = memory.word(self.runtime + offsets.first_interpreter)?;
        let threads_of = |interpreter: u64| {
            let first = memory.word(interpreter + offsets.first_thread).unwrap_or(0);
            chained(memory, first, offsets.next_thread)
        };
        let state = chained(memory, first, offsets.next_interpreter)
            .take(THREADS)
            .flat_map(threads_of)
            .take(THREADS)
            .find(|state| memory.word(state + offsets.thread_number) == Some(thread as u64))?;
        let (at, within) = offsets.frame;
        let frame = memory.word(state + at)?;
        within.map_or(Some(frame), |within| memory.word(frame + within))
    }

    fn place(&self, memory: &Memory, frame: u64) -> Option<Place> {
        let offsets = &self.offsets;
        let code = memory.word(frame + offsets.code)?;
        let function = self.text(memory, memory.word(code + offsets.name)?)?;
        let file = self.text(memory, memory.word(code + offsets.file)?)?;
        let lines = memory.word(code + offsets.lines)?;
        let length = memory.word(lines + offsets.bytes_length)?;
        let table = memory.bytes(lines + offsets.bytes, length.min(LINES) as usize)?;
        let first = memory.half(code + offsets.first_line)?;
        let at = memory.word(frame + offsets.instruction)?.wrapping_sub(code + offsets.instructions);
        // Before the first instruction it is on the first line.
        let line = line_of(&table, first, if at > i64::MAX as u64 { 0 } else { at / 2 }).unwrap_or(first);
        let file = file.rsplit('/').next().unwrap_or_default().to_owned();
        Some(Place { function: Some(function), line: Some((file, line)) })
    }

    fn text(&self, memory: &Memory, text: u64) -> Option<String> {
        let length = memory.word(text + self.offsets.text_length)?.min(NAME);
        let state = memory.half(text + self.offsets.text_state)?;
        if state & COMPACT == 0 {
            return None;
        }
        let (narrow, wide) = self.offsets.text;
        if state & ASCII != 0 {
            let bytes = memory.bytes(text + narrow, length as usize)?;
            return Some(String::from_utf8_lossy(&bytes).into_owned());
        }
        // Characters are as wide as the widest.
        let width = u64::from(state >> 2 & 7);
        let bytes = memory.bytes(text + wide, (length * width) as usize)?;
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
        Some(
            bytes
                .chunks(width.max(1) as usize)
                .map(|bytes| char::from_u32(number(bytes)).unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect(),
        )
    }
}

/// The records of a list, from the one at `first` on, each of which has the address of the next at `next`; 0 is none. It may lead in a circle.
fn chained(memory: &Memory, first: u64, next: u64) -> impl Iterator<Item = u64> {
    let some = |address: u64| (address != 0).then_some(address);
    std::iter::successors(some(first), move |record| memory.word(record + next).and_then(some))
}

/// What 3.13 tells of itself at the begin of its state (`_Py_DebugOffsets`, in words).
fn told(memory: &Memory, runtime: u64) -> Option<Offsets> {
    if &memory.bytes(runtime, 8)?[..] != b"xdebugpy" {
        return None;
    }
    let word = |index: u64| memory.word(runtime + 8 * index);
    let ascii = word(70)?;
    Some(Offsets {
        first_interpreter: word(5)?,
        next_interpreter: word(8)?,
        first_thread: word(9)?,
        next_thread: word(21)?,
        thread_number: word(25)?,
        frame: (word(23)?, None),
        previous: word(29)?,
        code: word(30)?,
        instruction: word(31)?,
        owner: word(33)?,
        file: word(35)?,
        name: word(37)?,
        lines: word(38)?,
        first_line: word(39)?,
        instructions: word(43)?,
        bytes_length: word(65)?,
        bytes: word(66)?,
        text_state: word(68)?,
        text_length: word(69)?,
        text: (ascii, ascii + 16),
    })
}

/// The line of an instruction, by the table of a function (CPython's `locations.md`); `None` if it has none.
fn line_of(table: &[u8], first: u32, instruction: u64) -> Option<u32> {
    let (mut line, mut at) = (i64::from(first), 0);
    let mut rest = table;
    while let Some((&entry, mut tail)) = rest.split_first() {
        let (form, length) = (entry >> 3 & 15, u64::from(entry & 7) + 1);
        line += match form {
            15 => 0,
            13 | 14 => {
                let moved = signed(number(&mut tail)?);
                // Columns, and the last line.
                for _ in 0..if form == 14 { 3 } else { 0 } {
                    number(&mut tail)?;
                }
                moved
            }
            10..=12 => {
                tail = tail.get(2..)?;
                i64::from(form) - 10
            }
            _ => {
                tail = tail.get(1..)?;
                0
            }
        };
        at += length;
        if instruction < at {
            return if form == 15 { None } else { u32::try_from(line).ok() };
        }
        rest = tail;
    }
    None
}

/// A number, six bits in each byte, the lowest first; one bit says that more follow.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 63).checked_shl(shift)?;
        if byte & 64 == 0 {
            return Some(number);
        }
        shift += 6;
    }
}

/// The lowest bit is the sign.
fn signed(number: u64) -> i64 {
    let magnitude = (number >> 1) as i64;
    if number & 1 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_in_a_table() {
        // Two instructions on the first line, one without a line, three on the next but one, eight far behind, one back again, all forms.
        let table = [
            0x80 | 2 << 3 | 1,
            0x12,
            0x80 | 15 << 3,
            0x80 | 12 << 3 | 2,
            1,
            2,
            0x80 | 13 << 3 | 7,
            0x40 | 0x08,
            0x03,
            0x80 | 14 << 3,
            3,
            1,
            2,
            3,
        ];
        let line = |instruction| line_of(&table, 10, instruction);
        assert_eq!([line(0), line(1), line(2), line(3)], [Some(10), Some(10), None, Some(12)]);
        assert_eq!([line(5), line(6), line(13), line(14)], [Some(12), Some(112), Some(112), Some(111)]);
        assert_eq!(line(15), None);
        assert_eq!(line_of(&table[..8], 10, 6), None);
    }
}
