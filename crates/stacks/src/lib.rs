//! Where the threads of another process are: the functions that they are in, by name and line, from outside.
//!
//! Nothing in that process takes part. Each thread is stopped for about as long as a page fault takes (ptrace(2)), and its stack is followed with the
//! tables that compilers write for exceptions, so that programs built without frame pointers or debugging information are read as well. Names come
//! from the symbols of the files that are mapped, lines from their debugging information, where there is some.

#![forbid(unsafe_code)]

mod image;
mod maps;
mod memory;
mod python;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use framehop::{CacheNative, Unwinder, UnwinderNative};
use parnass_base::traced::{Registers, stopped};

use image::{Bytes, Image};
use memory::Memory;
use python::Python;

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
    /// The functions of a Python program that it is in, innermost first. None where it runs no Python, or of a version that is not known here.
    pub python: Vec<Place>,
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
    /// The name of the file that the code is of, without folders; `None` for code that was made by the program, or whose file is gone.
    pub fn file_name(&self) -> Option<&str> {
        self.image.as_ref()?.path().file_name()?.to_str()
    }

    /// Whether it is of the program itself, not of a library.
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    /// Whether it is of an interpreter of Python.
    pub fn is_python(&self) -> bool {
        self.image.as_ref().is_some_and(|image| image.python().is_some())
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
        match self.file_name() {
            Some(name) => format!("{name}+{:#x}", self.address),
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
        let memory = Memory::of(process)?;
        let mut unwinder: UnwinderNative<Bytes, _> = UnwinderNative::new();
        let program = std::fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
        let mut placed = Vec::new();
        for file in maps::files(&text) {
            let Some(image) = self.image(process, &file.path) else { continue };
            let Some(bias) = image.bias(file.offset, file.range.start) else { continue };
            unwinder.add_module(image.module(file.range.clone(), bias));
            placed.push(Placed { range: file.range, bias, is_own: file.path == program, image });
        }
        let python = placed.iter().find_map(|placed| interpreter(placed, &memory));
        let mut numbers: Vec<i32> = std::fs::read_dir(format!("/proc/{process}/task"))?
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        numbers.sort_by_key(|&number| (number != process, number));
        let mut cache = CacheNative::<_>::new();
        let mut refused = None;
        let mut threads = Vec::new();
        for number in numbers.into_iter().take(THREADS) {
            let followed = stopped(number, |registers| {
                let python = python.map_or_else(Vec::new, |python| python.places(&memory, number));
                (follow(registers, &unwinder, &mut cache, &memory), python)
            });
            match followed {
                Ok((addresses, python)) => {
                    let frames = addresses.into_iter().map(|address| frame(address, &placed)).collect();
                    threads.push(Thread { number, frames, python });
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
    memory: &Memory,
) -> Vec<u64> {
    #[cfg(target_arch = "aarch64")]
    let start = framehop::UnwindRegsNative::new(registers.link, registers.stack, registers.frame);
    #[cfg(target_arch = "x86_64")]
    let start = framehop::UnwindRegsNative::new(registers.instruction, registers.stack, registers.frame);
    let mut read = |address: u64| memory.word(address).ok_or(());
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

/// The interpreter of Python, if this file has it.
fn interpreter(placed: &Placed, memory: &Memory) -> Option<Python> {
    let (runtime, version) = placed.image.python()?;
    Python::at(memory, placed.bias.wrapping_add(runtime), placed.bias.wrapping_add(version?))
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
    use std::time::{Duration, Instant};

    /// A child that sleeps, and is ended with the test.
    struct Sleeper(Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// The threads of a child once `is_there` says so of them, or after ten seconds; `None` where nobody may look at them.
    fn look(child: &Sleeper, is_there: fn(&[Thread]) -> bool) -> Option<Vec<Told>> {
        let process = child.0.id() as i32;
        let look = move || {
            let mut observer = Observer::default();
            let deadline = Instant::now() + Duration::from_secs(10);
            loop {
                match observer.threads(process) {
                    Ok(threads) if is_there(&threads) || Instant::now() > deadline => {
                        return Some(threads.iter().map(told).collect());
                    }
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return None,
                    _ => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        };
        std::thread::spawn(look).join().unwrap()
    }

    /// The symbols of a thread's stack, how many of its frames are of the program itself, and its functions of Python.
    type Told = (Vec<String>, usize, Vec<Place>);

    fn told(thread: &Thread) -> Told {
        let symbols = thread.frames.iter().filter_map(|frame| frame.symbol().map(str::to_owned));
        let own = thread.frames.iter().filter(|frame| frame.is_own()).count();
        (symbols.collect(), own, thread.python.clone())
    }

    fn sleeps(threads: &[Thread]) -> bool {
        let in_sleep = |frame: &Frame| frame.symbol().is_some_and(|symbol| symbol.contains("nanosleep"));
        threads.len() == 1 && threads[0].frames.iter().any(in_sleep)
    }

    #[test]
    fn the_stack_of_a_child_is_named_to_its_begin() {
        let child = Sleeper(Command::new("sleep").arg("1000").spawn().unwrap());
        let Some(threads) = look(&child, sleeps) else { return };
        let [(symbols, own, python)] = &threads[..] else { panic!("{threads:?}") };
        assert!(symbols[0].contains("nanosleep"), "{symbols:?}");
        assert!(symbols.iter().any(|symbol| symbol.starts_with("__libc_start_main")), "{symbols:?}");
        assert!(*own > 0 && python.is_empty());
    }

    #[test]
    fn the_functions_of_a_python_program_are_named() {
        let program = "\
import time
class Night:
    def schl\u{e4}ft(self):
        return time.sleep(1000
                          + 1)
    def \u{7720}\u{308b}(self): self.schl\u{e4}ft()
Night().\u{7720}\u{308b}()
";
        let version = Command::new("python3").arg("--version").output().unwrap().stdout;
        let version = String::from_utf8(version).unwrap();
        let known = ["3.11.", "3.12.", "3.13."].iter().any(|known| version.contains(known));
        let child = Sleeper(Command::new("python3").args(["-c", program]).spawn().unwrap());
        let Some(threads) = look(&child, sleeps) else { return };
        let [(_, _, python)] = &threads[..] else { panic!("{threads:?}") };
        let place = |function: &str, line| Place {
            function: Some(function.to_owned()),
            line: Some(("<string>".to_owned(), line)),
        };
        let expected =
            [place("Night.schl\u{e4}ft", 4), place("Night.\u{7720}\u{308b}", 6), place("<module>", 7)];
        assert_eq!(python[..], if known { &expected[..] } else { &[] }[..], "{version}");
    }

    #[test]
    fn who_has_ended_is_an_error() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(Observer::default().threads(child.id() as i32).is_err());
    }
}
