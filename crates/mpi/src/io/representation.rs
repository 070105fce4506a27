//! Data representations (MPI 5.0, section 14.5): how data looks in the file.

use crate::constants::*;
use crate::datatype::{Buffer, CountForm, Datatype};
use crate::{Error, Result};
use parnass_base::{Scratch, UserAddress};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A conversion function of the program, boxed by the C interface: memory, datatype, count, file buffer, position of the first
/// element in the converted data; returns an error code.
pub type Conversion = Box<dyn Fn(UserAddress, &Arc<Datatype>, i64, UserAddress, i64) -> i32 + Send + Sync>;

/// The program's function that tells the extent of a datatype in the file.
pub type ExtentFunction = Box<dyn Fn(&Arc<Datatype>) -> std::result::Result<i64, i32> + Send + Sync>;

/// A representation that the program has registered (MPI_Register_datarep).
pub struct UserRepresentation {
    pub name: Box<[u8]>,
    /// `None`: MPI_CONVERSION_FN_NULL, no conversion.
    pub read: Option<Conversion>,
    pub write: Option<Conversion>,
    pub extent: ExtentFunction,
}

/// How data looks in a file.
#[derive(Clone)]
pub(super) enum Representation {
    /// As in memory.
    Native,
    /// As in memory: all processes of a job run the same library on machines alike.
    Internal,
    External32,
    User(Arc<UserRepresentation>),
}

impl fmt::Debug for Representation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&String::from_utf8_lossy(self.name()))
    }
}

/// The representations that a process knows.
#[derive(Default)]
pub(crate) struct Representations(Mutex<Vec<Arc<UserRepresentation>>>);

impl Representations {
    /// MPI_Register_datarep.
    pub(crate) fn register(&self, new: UserRepresentation) -> Result<()> {
        let shown = String::from_utf8_lossy(&new.name).into_owned();
        let longest = MPI_MAX_DATAREP_STRING as usize - 1;
        if new.name.is_empty() || new.name.len() > longest {
            let message = format!("datarep is \"{shown}\"; a name has 1 to {longest} characters");
            return Err(Error::new(MPI_ERR_ARG, message));
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = matches!(&*new.name, b"native" | b"internal" | b"external32")
            || known.iter().any(|one| one.name == new.name);
        if taken {
            let message =
                format!("the data representation \"{shown}\" is there already; choose another name");
            return Err(Error::new(MPI_ERR_DUP_DATAREP, message));
        }
        known.push(Arc::new(new));
        Ok(())
    }

    pub(super) fn find(&self, name: &[u8]) -> Result<Representation> {
        match name {
            b"native" => return Ok(Representation::Native),
            b"internal" => return Ok(Representation::Internal),
            b"external32" => return Ok(Representation::External32),
            _ => {}
        }
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|one| *one.name == *name).cloned().map(Representation::User).ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|one| format!(", \"{}\"", String::from_utf8_lossy(&one.name))).collect();
            Error::new(
                MPI_ERR_UNSUPPORTED_DATAREP,
                format!(
                    "datarep is \"{}\"; known are \"native\", \"internal\", \"external32\"{}; others are registered with \
                     MPI_Register_datarep first",
                    String::from_utf8_lossy(name),
                    names.concat()
                ),
            )
        })
    }
}

impl fmt::Debug for Representations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        formatter
            .debug_list()
            .entries(known.iter().map(|one| String::from_utf8_lossy(&one.name).into_owned()))
            .finish()
    }
}

/// An error that a function of the program has returned.
#[cold]
fn user_failed(what: &str, name: &[u8], code: i32) -> Error {
    Error::new(
        MPI_ERR_CONVERSION,
        format!(
            "the program's {what} function of the data representation \"{}\" returned the error {code}",
            String::from_utf8_lossy(name)
        ),
    )
}

impl Representation {
    pub(super) fn name(&self) -> &[u8] {
        match self {
            Representation::Native => b"native",
            Representation::Internal => b"internal",
            Representation::External32 => b"external32",
            Representation::User(user) => &user.name,
        }
    }

    /// Whether data looks different in the file.
    pub(super) fn converts(&self) -> bool {
        match self {
            Representation::Native | Representation::Internal => false,
            Representation::External32 => true,
            Representation::User(user) => user.read.is_some() || user.write.is_some(),
        }
    }

    /// A datatype with the extents that it has in the file (MPI 5.0, section 14.5.1): displacements in bytes stay, and what is
    /// counted in extents takes the extents of the file.
    pub(super) fn in_file(&self, datatype: &Arc<Datatype>, byte: &Arc<Datatype>) -> Result<Arc<Datatype>> {
        match self {
            Representation::Native | Representation::Internal => Ok(Arc::clone(datatype)),
            Representation::External32 => datatype.with_elements(&mut |element| {
                let bytes = element.layout().signature().external_bytes();
                Datatype::contiguous(CountForm::Large, bytes as i64, byte)
            }),
            Representation::User(user) => datatype.with_elements(&mut |element| {
                let extent =
                    (user.extent)(element).map_err(|code| user_failed("extent", &user.name, code))?;
                Datatype::contiguous(CountForm::Large, extent, byte)
            }),
        }
    }

    /// MPI_File_get_type_extent.
    pub(super) fn extent(&self, datatype: &Arc<Datatype>, byte: &Arc<Datatype>) -> Result<i64> {
        match self {
            Representation::User(user) => {
                (user.extent)(datatype).map_err(|code| user_failed("extent", &user.name, code))
            }
            _ => Ok(self.in_file(datatype, byte)?.layout().extent()),
        }
    }

    /// The bytes that so many elements take in the file.
    pub(super) fn file_bytes(&self, count: u64, datatype: &Arc<Datatype>) -> Result<u64> {
        let one = match self {
            Representation::External32 => datatype.layout().signature().external_bytes(),
            Representation::User(user) if self.converts() => {
                let extent =
                    (user.extent)(datatype).map_err(|code| user_failed("extent", &user.name, code))?;
                u64::try_from(extent).map_err(|_| user_failed("extent", &user.name, MPI_ERR_ARG))?
            }
            _ => datatype.layout().size(),
        };
        count.checked_mul(one).filter(|&bytes| bytes <= i64::MAX as u64).ok_or_else(|| {
            let message = format!(
                "count is {count}: times {one} bytes that is more than 2^63 - 1; use a smaller count"
            );
            Error::new(MPI_ERR_COUNT, message)
        })
    }

    /// Brings data from memory into the form that it has in the file.
    pub(super) fn encode(&self, buffer: &Buffer<'_>, target: UserAddress) -> Result<()> {
        let layout = buffer.datatype.layout();
        match self {
            Representation::External32 => {
                layout.pack_external(buffer.count, buffer.address, target).map(|_| ()).map_err(|error| {
                    Error::new(
                        MPI_ERR_CONVERSION,
                        format!("{error}; write it as a type of fixed size, such as MPI_INT64_T"),
                    )
                })
            }
            Representation::User(user) if user.write.is_some() => {
                let write = user.write.as_ref().map_or(MPI_SUCCESS, |write| {
                    write(buffer.address, buffer.datatype, buffer.count as i64, target, 0)
                });
                match write {
                    MPI_SUCCESS => Ok(()),
                    code => Err(user_failed("write conversion", &user.name, code)),
                }
            }
            _ => {
                let room = self.file_bytes(buffer.count, buffer.datatype)?;
                layout.pack(buffer.count, buffer.address, 0, target, room.min(buffer.size()));
                Ok(())
            }
        }
    }

    /// Brings the first `bytes` of data in the file's form into memory; how many bytes they are there.
    pub(super) fn decode(&self, buffer: &Buffer<'_>, source: UserAddress, bytes: u64) -> Result<u64> {
        let layout = buffer.datatype.layout();
        let one = match self.file_bytes(1, buffer.datatype)? {
            0 => return Ok(0),
            one => one,
        };
        let (whole, rest) = (bytes / one, bytes % one);
        match self {
            Representation::External32 => {
                layout.unpack_external(whole, buffer.address, source);
                let inside = match rest {
                    0 => 0,
                    _ => {
                        let address = buffer.address.offset(whole as i64 * layout.extent());
                        let source = source.offset((whole * one) as i64);
                        self.decode_part(&Buffer::new(address, 1, buffer.datatype), source, rest)?
                    }
                };
                Ok(whole * layout.size() + inside)
            }
            Representation::User(user) if user.read.is_some() => {
                let read = user.read.as_ref().map_or(MPI_SUCCESS, |read| {
                    read(buffer.address, buffer.datatype, whole as i64, source, 0)
                });
                match read {
                    MPI_SUCCESS => Ok(whole * layout.size()),
                    code => Err(user_failed("read conversion", &user.name, code)),
                }
            }
            _ => Ok(layout.unpack(buffer.count, buffer.address, 0, source, bytes)),
        }
    }

    /// The elements of one copy that `bytes` of `external32` hold completely.
    fn decode_part(&self, one: &Buffer<'_>, source: UserAddress, bytes: u64) -> Result<u64> {
        let layout = one.datatype.layout();
        let signature = layout.signature();
        let (elements, _) = signature.external_elements_in(bytes);
        let native = signature.bytes_of(elements).unwrap_or(0);
        let external = signature.external_bytes();
        let padded = Scratch::new(external as usize);
        padded.address().write(&vec![0; external as usize]);
        padded.address().copy_apart(source, bytes as usize);
        let (low, span) = layout.footprint(1);
        let copy = Scratch::new(span as usize);
        let copy_address = copy.address().offset(-low);
        layout.unpack_external(1, copy_address, padded.address());
        let packed = Scratch::new(native as usize);
        layout.pack(1, copy_address, 0, packed.address(), native);
        Ok(layout.unpack(1, one.address, 0, packed.address(), native))
    }
}
