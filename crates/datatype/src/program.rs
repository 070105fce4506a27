//! Layouts compiled to copy programs.
//!
//! A program says which bytes of memory form the packed stream, in which order. It is a small tree whose
//! leaves are single runs, strided runs and lists of runs; building it merges what is adjacent, so that
//! executing it touches as few nodes as possible:
//!
//! ```text
//!   Run       [====]
//!   Strided   [==]....[==]....[==]          count runs of one length at one distance
//!   Blocks    [==]..[==].......[==]         runs of one length at listed offsets
//!   Runs      [=]...[====]..[==]            runs of any length at listed offsets
//!   Loop      a body repeated at one distance
//!   Sequence  different bodies one after the other
//! ```
//!
//! All offsets are relative to the address that the program is executed at, plus `first`.

use std::sync::Arc;

/// A compiled layout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    /// Added to every offset below.
    pub first: i64,
    /// Bytes of the packed stream.
    pub size: u64,
    pub shape: Shape,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Empty,
    Run,
    Strided { count: u64, stride: i64, length: u64 },
    Blocks { length: u64, offsets: Arc<[i64]> },
    Runs(Arc<[Run]>),
    Loop { count: u64, stride: i64, body: Arc<Program> },
    Sequence(Arc<[Part]>),
}

/// A run of bytes: `offset` in memory, `start` in the packed stream; it ends where the next one starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Run {
    pub offset: i64,
    pub start: u64,
}

/// A step of a sequence and where it starts in the packed stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub start: u64,
    pub body: Program,
}

/// A sequence inside a sequence is spliced in up to this many parts; beyond, it is shared.
const SPLICE_LIMIT: usize = 4096;
/// From this depth on sequences are spliced whatever their length, so that depth stays bounded: every loop
/// at least doubles the size in bytes, and a size is below 2^63.
const DEPTH_LIMIT: u32 = 128;

impl Program {
    pub const EMPTY: Program = Program { first: 0, size: 0, shape: Shape::Empty };

    /// One run of bytes.
    pub fn run(offset: i64, length: u64) -> Program {
        if length == 0 { Program::EMPTY } else { Program { first: offset, size: length, shape: Shape::Run } }
    }

    /// The same program `bytes` further on.
    pub fn shifted(&self, bytes: i64) -> Program {
        Program { first: self.first.wrapping_add(bytes), ..self.clone() }
    }

    /// `count` times this program, `stride` bytes apart. The caller has checked that sizes and offsets fit.
    pub fn repeated(&self, count: u64, stride: i64) -> Program {
        if count == 0 || self.size == 0 {
            return Program::EMPTY;
        }
        if count == 1 {
            return self.clone();
        }
        let size = self.size * count;
        let shape = match &self.shape {
            Shape::Run if stride == self.size as i64 => Shape::Run,
            Shape::Run => Shape::Strided { count, stride, length: self.size },
            Shape::Strided { count: inner, stride: step, length }
                if step.checked_mul(*inner as i64) == Some(stride) =>
            {
                Shape::Strided { count: count * inner, stride: *step, length: *length }
            }
            Shape::Loop { count: inner, stride: step, body }
                if step.checked_mul(*inner as i64) == Some(stride) =>
            {
                Shape::Loop { count: count * inner, stride: *step, body: body.clone() }
            }
            _ => {
                let body = Arc::new(Program { first: 0, ..self.clone() });
                Shape::Loop { count, stride, body }
            }
        };
        Program { first: self.first, size, shape }
    }

    /// One program after the other.
    #[cfg(test)]
    pub fn sequence(programs: Vec<Program>) -> Program {
        let mut builder = SequenceBuilder::default();
        for program in programs {
            builder.push(program);
        }
        builder.finish()
    }

    /// Nesting of the nodes; the recursion of an execution is no deeper.
    fn depth(&self) -> u32 {
        match &self.shape {
            Shape::Loop { body, .. } => 1 + body.depth(),
            Shape::Sequence(parts) => 1 + parts.iter().map(|part| part.body.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// The length of run `index` of a [`Shape::Runs`] of `size` bytes.
    pub fn run_length(runs: &[Run], index: usize, size: u64) -> u64 {
        runs.get(index + 1).map_or(size, |next| next.start) - runs[index].start
    }
}

/// Collects the parts of a sequence, merging neighbours as they come.
#[derive(Default)]
pub(crate) struct SequenceBuilder {
    parts: Vec<Part>,
    size: u64,
}

impl SequenceBuilder {
    pub fn with_capacity(capacity: usize) -> SequenceBuilder {
        SequenceBuilder { parts: Vec::with_capacity(capacity), size: 0 }
    }

    /// Appends a run.
    pub fn push_run(&mut self, offset: i64, length: u64) {
        if length == 0 {
            return;
        }
        if let Some(Part { body: Program { first, size, shape: Shape::Run }, .. }) = self.parts.last_mut()
            && first.wrapping_add_unsigned(*size) == offset
        {
            *size += length;
        } else {
            self.parts.push(Part { start: self.size, body: Program::run(offset, length) });
        }
        self.size += length;
    }

    /// Appends a program, taking short lists apart so that their runs can merge.
    pub fn push(&mut self, program: Program) {
        match &program.shape {
            Shape::Empty => {}
            Shape::Run => self.push_run(program.first, program.size),
            Shape::Runs(runs) if runs.len() <= SPLICE_LIMIT => {
                for index in 0..runs.len() {
                    let length = Program::run_length(runs, index, program.size);
                    self.push_run(program.first.wrapping_add(runs[index].offset), length);
                }
            }
            Shape::Blocks { length, offsets } if offsets.len() <= SPLICE_LIMIT => {
                for offset in offsets.iter() {
                    self.push_run(program.first.wrapping_add(*offset), *length);
                }
            }
            Shape::Sequence(parts) if parts.len() <= SPLICE_LIMIT || program.depth() > DEPTH_LIMIT => {
                for part in parts.iter() {
                    self.push(part.body.shifted(program.first));
                }
            }
            _ => {
                let size = program.size;
                self.parts.push(Part { start: self.size, body: program });
                self.size += size;
            }
        }
    }

    /// The shortest program for what was pushed.
    pub fn finish(mut self) -> Program {
        let size = self.size;
        match self.parts.as_slice() {
            [] => return Program::EMPTY,
            [_] => return self.parts.remove(0).body,
            _ => {}
        }
        let first = self.parts[0].body.first;
        let length = self.parts[0].body.size;
        let alike = self.parts[1..]
            .iter()
            .all(|part| part.body.size == length && part.body.shape == self.parts[0].body.shape);
        if alike {
            let stride = self.parts[1].body.first.wrapping_sub(first);
            if self.parts.windows(2).all(|pair| pair[1].body.first.wrapping_sub(pair[0].body.first) == stride)
            {
                return self.parts[0].body.repeated(self.parts.len() as u64, stride);
            }
        }
        if self.parts.iter().all(|part| part.body.shape == Shape::Run) {
            let shape = if alike {
                Shape::Blocks {
                    length,
                    offsets: self.parts.iter().map(|part| part.body.first.wrapping_sub(first)).collect(),
                }
            } else {
                let run =
                    |part: &Part| Run { offset: part.body.first.wrapping_sub(first), start: part.start };
                Shape::Runs(self.parts.iter().map(run).collect())
            };
            return Program { first, size, shape };
        }
        Program { first: 0, size, shape: Shape::Sequence(self.parts.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_runs_merge() {
        let program = Program::sequence(vec![
            Program::run(4, 4),
            Program::run(8, 2),
            Program::EMPTY,
            Program::run(10, 6),
        ]);
        assert_eq!(program, Program::run(4, 12));
    }

    #[test]
    fn regular_blocks_become_strided_and_irregular_ones_a_list() {
        let regular = Program::sequence(vec![Program::run(0, 4), Program::run(12, 4), Program::run(24, 4)]);
        assert_eq!(regular.shape, Shape::Strided { count: 3, stride: 12, length: 4 });
        let irregular = Program::sequence(vec![Program::run(8, 4), Program::run(0, 4), Program::run(24, 4)]);
        assert_eq!(irregular.shape, Shape::Blocks { length: 4, offsets: [0, -8, 16].into() });
        assert_eq!(irregular.first, 8);
    }

    #[test]
    fn nested_strides_that_continue_are_one() {
        let inner = Program::run(0, 4).repeated(5, 16);
        assert_eq!(inner.repeated(3, 80).shape, Shape::Strided { count: 15, stride: 16, length: 4 });
        assert!(matches!(inner.repeated(3, 96).shape, Shape::Loop { count: 3, stride: 96, .. }));
    }

    #[test]
    fn deep_nesting_stays_shallow() {
        let mut program = Program::run(0, 4);
        for level in 1..2_000_i64 {
            program = Program::sequence(vec![program, Program::run(level * level * 8, 1 + level as u64 % 7)]);
        }
        assert!(program.depth() <= DEPTH_LIMIT + 1);
    }
}
