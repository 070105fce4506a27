//! What a process has mapped (proc(5), `/proc/PID/maps`).

use std::ops::Range;
use std::path::PathBuf;

/// A file with code, as it is mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    pub path: PathBuf,
    /// From its first mapping to the end of its last one.
    pub range: Range<u64>,
    /// Where in the file the first mapping begins.
    pub offset: u64,
}

/// The files of which some part may be executed.
pub fn files(maps: &str) -> Vec<Mapped> {
    let mut files: Vec<(Mapped, bool)> = Vec::new();
    for line in maps.lines() {
        let Some((mapped, executable)) = parse(line) else { continue };
        match files.last_mut() {
            // The parts of a file lie behind one another.
            Some((last, any)) if last.path == mapped.path && mapped.offset >= last.offset => {
                last.range.end = mapped.range.end;
                *any |= executable;
            }
            _ => files.push((mapped, executable)),
        }
    }
    files.into_iter().filter_map(|(mapped, executable)| executable.then_some(mapped)).collect()
}

/// `start-end rwxp offset device inode path`; `None` where no file is mapped.
fn parse(line: &str) -> Option<(Mapped, bool)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let (rights, rest) = rest.split_once(' ')?;
    let (offset, rest) = rest.split_once(' ')?;
    let path = &rest[rest.find('/')?..];
    let number = |text| u64::from_str_radix(text, 16).ok();
    let mapped = Mapped { path: path.into(), range: number(start)?..number(end)?, offset: number(offset)? };
    Some((mapped, rights.contains('x')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_code_are_found_whole() {
        let maps = "\
1000-2000 r--p 00000000 fe:01 77 /opt/a program
2000-5000 r-xp 00001000 fe:01 77 /opt/a program
5000-6000 rw-p 00004000 fe:01 77 /opt/a program
6000-7000 rw-p 00000000 00:00 0 [heap]
8000-9000 r--s 00000000 fe:01 78 /opt/data
9000-a000 r-xp 00000000 00:00 0 [vdso]
a000-b000 r-xp 00002000 fe:01 79 /opt/lib.so (deleted)
nonsense
";
        let found = files(maps);
        assert_eq!(
            found,
            [
                Mapped { path: "/opt/a program".into(), range: 0x1000..0x6000, offset: 0 },
                Mapped { path: "/opt/lib.so (deleted)".into(), range: 0xa000..0xb000, offset: 0x2000 },
            ]
        );
    }
}
