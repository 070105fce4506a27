//! Where the threads of another process are: the functions that they are in, by name and line, from outside.
//!
//! Nothing in that process takes part. Each thread is stopped for about as long as a page fault takes (ptrace(2)), and its stack is followed with the
//! tables that compilers write for exceptions, so that programs built without frame pointers or debugging information are read as well. Names come
//! from the symbols of the files that are mapped, lines from their debugging information, where there is some.

#![forbid(unsafe_code)]

mod image;
mod maps;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use framehop::{CacheNative, Unwinder, UnwinderNative};
use parnass_base::traced::{Registers, stopped};

use image::{Bytes, Image};

/// Threads of a process that are looked at, and frames of each.
const THREADS: usize = 64;
const FRAMES: usize = 256;

/// A thread of a process.
#[derive(Debug)]
pub struct Thread {
    /// Its number; that of the first one is that of the process.
    pub number: i32,
    /// Where it is, and what has called that, innermost first. Cut off where a stack cannot be followed.
    pub frames: Vec<Frame>,
}

/// A place in the code.
#[derive(Debug)]
pub struct Frame {
    image: Option<Rc<Image>>,
    /// As the file counts addresses.
    address: u64,
    is_own: bool,
}

/// A function, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its name as in the source; `None` where the file tells none.
    pub function: Option<String>,
    /// The name of the source file, without folders, and the line in it.
    pub line: Option<(String, u32)>,
}

impl Frame {
    /// The file that the code is of; `None` for code that was made by the program, or whose file is gone.
    pub fn file(&self) -> Option<&Path> {
        self.image.as_ref().map(|image| image.path())
    }

    /// Whether it is of the program itself, not of a library.
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// The symbol of the linker that it lies in, as it stands in the file.
    pub fn symbol(&self) -> Option<&str> {
        self.image.as_ref()?.symbol(self.address)
    }

    /// The name that the symbol stands for in the source.
    pub fn name(&self) -> Option<String> {
        self.symbol().map(image::in_source)
    }

    /// The functions here: one, or where some were built into others, these too, innermost first. Reads debugging information.
    pub fn places(&self) -> Vec<Place> {
        self.image.as_ref().map_or_else(Vec::new, |image| image.places(self.address))
    }

    /// The file and the address in it, for tools that read such.
    pub fn address(&self) -> String {
        match self.file().and_then(Path::file_name) {
            Some(name) => format!("{}+{:#x}", name.to_string_lossy(), self.address),
            None => format!("{:#x}", self.address),
        }
    }
}

/// A file in a process.
struct Placed {
    range: std::ops::Range<u64>,
    bias: u64,
    is_own: bool,
    image: Rc<Image>,
}

/// Looks at processes, and keeps what it has read of files.
#[derive(Debug, Default)]
pub struct Observer {
    images: HashMap<PathBuf, Option<Rc<Image>>>,
}

impl Observer {
    /// The threads of a process, its first one first; those that cannot be looked at are missing. To be called on a thread that ends soon (see
    /// [`stopped`]).
    ///
    /// # Errors
    /// The process may not be looked at, or has ended.
    pub fn threads(&mut self, process: i32) -> io::Result<Vec<Thread>> {
        let text = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
        let memory = File::open(format!("/proc/{process}/mem"))?;
        let mut unwinder: UnwinderNative<Bytes, _> = UnwinderNative::new();
        let program = std::fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
        let mut placed = Vec::new();
        for file in maps::files(&text) {
            let Some(image) = self.image(process, &file.path) else { continue };
            let Some(bias) = image.bias(file.offset, file.range.start) else { continue };
            unwinder.add_module(image.module(file.range.clone(), bias));
            placed.push(Placed { range: file.range, bias, is_own: file.path == program, image });
        }
        let mut numbers: Vec<i32> = std::fs::read_dir(format!("/proc/{process}/task"))?
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        numbers.sort_by_key(|&number| (number != process, number));
        let mut cache = CacheNative::<_>::new();
        let mut refused = None;
        let mut threads = Vec::new();
        for number in numbers.into_iter().take(THREADS) {
            let followed = stopped(number, |registers| follow(registers, &unwinder, &mut cache, &memory));
            match followed {
                Ok(addresses) => {
                    let frames = addresses.into_iter().map(|address| frame(address, &placed)).collect();
                    threads.push(Thread { number, frames });
                }
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            Some(error) if threads.is_empty() => Err(error),
            _ => Ok(threads),
        }
    }

    /// What is known of the file that a process has mapped by this name.
    fn image(&mut self, process: i32, path: &Path) -> Option<Rc<Image>> {
        if let Some(known) = self.images.get(path) {
            return known.clone();
        }
        let opened = Image::open(path).or_else(|| {
            // Of a process in a container of its own.
            let inside = path.strip_prefix("/").unwrap_or(path);
            Image::open(&PathBuf::from(format!("/proc/{process}/root")).join(inside))
        });
        let image = opened.map(Rc::new);
        self.images.insert(path.to_owned(), image.clone());
        image
    }
}

/// The addresses in the process at which its calls are, innermost first.
fn follow(
    registers: Registers,
    unwinder: &UnwinderNative<Bytes, framehop::MayAllocateDuringUnwind>,
    cache: &mut CacheNative<framehop::MayAllocateDuringUnwind>,
    memory: &File,
) -> Vec<u64> {
    #[cfg(target_arch = "aarch64")]
    let start = framehop::UnwindRegsNative::new(registers.link, registers.stack, registers.frame);
    #[cfg(target_arch = "x86_64")]
    let start = framehop::UnwindRegsNative::new(registers.instruction, registers.stack, registers.frame);
    let mut read = |address: u64| {
        let mut word = [0; 8];
        memory.read_exact_at(&mut word, address).map_err(drop)?;
        Ok(u64::from_ne_bytes(word))
    };
    let mut frames = unwinder.iter_frames(registers.instruction, start, cache, &mut read);
    let mut addresses = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        addresses.push(frame.address_for_lookup());
        if addresses.len() == FRAMES {
            break;
        }
    }
    addresses
}

fn frame(address: u64, placed: &[Placed]) -> Frame {
    match placed.iter().find(|placed| placed.range.contains(&address)) {
        Some(placed) => Frame {
            image: Some(Rc::clone(&placed.image)),
            address: address.wrapping_sub(placed.bias),
            is_own: placed.is_own,
        },
        None => Frame { image: None, address, is_own: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    /// A child that sleeps, and is ended with the test.
    struct Sleeper(Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn the_stack_of_a_child_is_named_to_its_begin() {
        let child = Sleeper(Command::new("sleep").arg("1000").spawn().unwrap());
        let process = child.0.id() as i32;
        let look = move || {
            let mut observer = Observer::default();
            let names = |thread: &Thread| {
                let symbols = thread.frames.iter().filter_map(|frame| frame.symbol().map(str::to_owned));
                (symbols.collect::<Vec<_>>(), thread.frames.iter().filter(|frame| frame.is_own()).count())
            };
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
            loop {
                // Until it has come so far.
                let threads =
                    observer.threads(process).map(|threads| threads.iter().map(names).collect::<Vec<_>>());
                let sleeps = |threads: &Vec<(Vec<String>, usize)>| {
                    threads.len() == 1 && threads[0].0.iter().any(|symbol| symbol.contains("nanosleep"))
                };
                if threads.as_ref().is_ok_and(sleeps) || std::time::Instant::now() > deadline {
                    return threads;
                }
            }
        };
        match std::thread::spawn(look).join().unwrap() {
            Ok(threads) => {
                let [(symbols, own)] = &threads[..] else { panic!("{threads:?}") };
                assert!(symbols[0].contains("nanosleep"), "{symbols:?}");
                assert!(symbols.iter().any(|symbol| symbol.starts_with("__libc_start_main")), "{symbols:?}");
                assert!(*own > 0);
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
    }

    #[test]
    fn who_has_ended_is_an_error() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(Observer::default().threads(child.id() as i32).is_err());
    }
}
