//! A file with code: its tables for following stacks, its symbols and its lines.

use std::cell::OnceCell;
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::Loader;
use framehop::{ExplicitModuleSectionInfo, Module};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache};

use crate::Place;

/// Of a section; several processes make use of them.
pub type Bytes = Arc<[u8]>;

pub struct Image {
    path: PathBuf,
    /// Of each part that is mapped: the range in the file, and the address of its begin.
    segments: Vec<(Range<u64>, u64)>,
    sections: ExplicitModuleSectionInfo<Bytes>,
    /// Read when it is asked for.
    names: OnceCell<Option<Loader>>,
    /// Where the state of a Python interpreter lies in it, and the number of its version, which has a place since 3.11.
    python: Option<(u64, Option<u64>)>,
}

impl fmt::Debug for Image {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Image({:?})", self.path)
    }
}

impl Image {
    /// `None` where there is no such file, or none of code that is known here.
    pub fn open(path: &Path) -> Option<Image> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let file: ElfFile64<'_, object::Endianness, _> = ElfFile64::parse(&cache).ok()?;
        let segments = file
            .segments()
            .map(|segment| {
                let (begin, length) = segment.file_range();
                (begin..begin + length, segment.address())
            })
            .collect();
        let range = |name: &str| {
            let section = file.section_by_name(name)?;
            Some(section.address()..section.address() + section.size())
        };
        let data = |name: &str| Some(Bytes::from(file.section_by_name(name)?.data().ok()?));
        let sections = ExplicitModuleSectionInfo {
            text_svma: range(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            debug_frame: data(".debug_frame"),
            ..Default::default()
        };
        let is_python = path.file_name().is_some_and(|name| name.to_string_lossy().contains("python"));
        let address = |name: &str| {
            let mut symbols = file.dynamic_symbols();
            symbols.find(|symbol| symbol.name() == Ok(name)).map(|symbol| symbol.address())
        };
        let python = is_python.then(|| Some((address("_PyRuntime")?, address("Py_Version")))).flatten();
        Some(Image { path: path.to_owned(), segments, sections, names: OnceCell::new(), python })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn python(&self) -> Option<(u64, Option<u64>)> {
        self.python
    }

    /// What addresses of the file are to be added to be those of a process that has mapped it at `start` from `offset` on.
    pub fn bias(&self, offset: u64, start: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        let (file, address) = self
            .segments
            .iter()
            .find(|(file, _)| file.start / PAGE * PAGE <= offset && offset < file.end.max(file.start + 1))?;
        Some(start.wrapping_sub(address.wrapping_add(offset.wrapping_sub(file.start))))
    }

    /// For the unwinder: this file, as a process has mapped it.
    pub fn module(&self, range: Range<u64>, bias: u64) -> Module<Bytes> {
        Module::new(self.path.display().to_string(), range, bias, self.sections.clone())
    }

    fn names(&self) -> Option<&Loader> {
        self.names.get_or_init(|| Loader::new(&self.path).ok()).as_ref()
    }

    pub fn symbol(&self, address: u64) -> Option<&str> {
        self.names()?.find_symbol(address)
    }

    pub fn places(&self, address: u64) -> Vec<Place> {
        let Some(names) = self.names() else { return Vec::new() };
        let mut places = Vec::new();
        if let Ok(mut frames) = names.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let function = frame
                    .function
                    .and_then(|function| function.demangle().map(|name| name.into_owned()).ok());
                let line = frame.location.and_then(|location| {
                    let file = location.file?.rsplit('/').next()?;
                    Some((file.to_owned(), location.line?))
                });
                places.push(Place { function, line });
            }
        }
        // Who was not told by debugging information is told by the symbol; that is the outermost, for no symbol is of one that was built in.
        if places.is_empty() {
            places.push(Place { function: None, line: None });
        }
        if let Some(last) = places.last_mut()
            && last.function.is_none()
        {
            last.function = self.symbol(address).map(in_source);
        }
        places
    }
}

/// A symbol's name in the source.
pub fn in_source(symbol: &str) -> String {
    addr2line::demangle_auto(symbol.into(), None).into_owned()
}
