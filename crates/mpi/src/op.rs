//! Reduction operations (MPI 5.0, section 6.9): the predefined ones, and those made of a program's function.

use crate::constants::{MPI_ERR_ARG, MPI_ERR_OP};
use crate::datatype::Datatype;
use crate::{Error, Result};
use parnass_base::UserAddress;
use parnass_datatype::{Operand, Operator};
use std::fmt;
use std::sync::Arc;

/// A program's function: combines `count` elements at the first address into those at the second. The C interface makes
/// it, with the handle of the datatype that the function expects.
pub type UserFunction = dyn Fn(UserAddress, UserAddress, u64, &Arc<Datatype>) + Send + Sync;

/// A reduction operation. Lives in an [`Arc`]: handles and operations hold one.
pub struct Op {
    kind: Kind,
}

enum Kind {
    Predefined { handle: usize, name: &'static str, operator: Operator },
    User { function: Box<UserFunction>, commutative: bool },
}

/// Handle values of the predefined operations (MPI 5.0, section 20.3), their names and operators.
const TABLE: &[(usize, &str, Operator)] = &[
    (0x21, "MPI_SUM", Operator::Sum),
    (0x22, "MPI_MIN", Operator::Min),
    (0x23, "MPI_MAX", Operator::Max),
    (0x24, "MPI_PROD", Operator::Product),
    (0x28, "MPI_BAND", Operator::BitwiseAnd),
    (0x29, "MPI_BOR", Operator::BitwiseOr),
    (0x2a, "MPI_BXOR", Operator::BitwiseXor),
    (0x30, "MPI_LAND", Operator::LogicalAnd),
    (0x31, "MPI_LOR", Operator::LogicalOr),
    (0x32, "MPI_LXOR", Operator::LogicalXor),
    (0x38, "MPI_MINLOC", Operator::MinLocation),
    (0x39, "MPI_MAXLOC", Operator::MaxLocation),
    (0x3c, "MPI_REPLACE", Operator::Replace),
    (0x3d, "MPI_NO_OP", Operator::Nothing),
];

/// All predefined operations lie from here ...
const FIRST: usize = 0x20;
/// ... to before here.
const END: usize = 0x40;

impl Op {
    /// MPI_Op_create.
    pub fn user(function: Box<UserFunction>, commutative: bool) -> Arc<Op> {
        Arc::new(Op { kind: Kind::User { function, commutative } })
    }

    /// The handle value, if it is predefined.
    pub fn predefined(&self) -> Option<usize> {
        match self.kind {
            Kind::Predefined { handle, .. } => Some(handle),
            Kind::User { .. } => None,
        }
    }

    /// Its name, for messages.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Predefined { name, .. } => name,
            Kind::User { .. } => "a user-defined operation",
        }
    }

    /// The operator of a predefined operation.
    #[inline]
    pub fn operator(&self) -> Option<Operator> {
        match self.kind {
            Kind::Predefined { operator, .. } => Some(operator),
            Kind::User { .. } => None,
        }
    }

    /// The error of a predefined operation that is not defined on this datatype.
    pub(crate) fn undefined_on(&self, datatype: &Datatype) -> Error {
        let operator = self.operator().unwrap_or(Operator::Nothing);
        undefined(operator, self.name(), datatype.operand(), datatype)
    }

    /// Whether operands may be exchanged. All predefined operations are commutative, except MPI_REPLACE and MPI_NO_OP.
    pub fn is_commutative(&self) -> bool {
        match self.kind {
            Kind::Predefined { operator, .. } => !matches!(operator, Operator::Replace | Operator::Nothing),
            Kind::User { commutative, .. } => commutative,
        }
    }

    /// An error if it is predefined: such an operation cannot be freed.
    pub fn require_mortal(&self) -> Result<()> {
        match self.kind {
            Kind::User { .. } => Ok(()),
            Kind::Predefined { name, .. } => Err(Error::new(
                MPI_ERR_OP,
                format!(
                    "the operation {name} is predefined and cannot be freed; free only what MPI_Op_create returned"
                ),
            )),
        }
    }

    /// An error unless the operation may be used in a reduction of elements of this datatype.
    #[inline]
    pub fn require_defined_on(&self, datatype: &Datatype) -> Result<()> {
        match &self.kind {
            Kind::User { .. } => Ok(()),
            Kind::Predefined { operator: Operator::Replace | Operator::Nothing, name, .. } => {
                Err(Error::new(
                    MPI_ERR_OP,
                    format!(
                        "the operation {name} is only for one-sided accumulation; use another one for a reduction"
                    ),
                ))
            }
            Kind::Predefined { operator, name, .. } => match datatype.operand() {
                Some(operand) if operator.accepts(operand) => Ok(()),
                operand => Err(undefined(*operator, name, operand, datatype)),
            },
        }
    }

    /// Combines `count` elements: `inout[i] = input[i] op inout[i]`. The operation must be defined on the datatype.
    pub fn reduce(
        &self,
        datatype: &Arc<Datatype>,
        input: UserAddress,
        inout: UserAddress,
        count: u64,
    ) -> Result<()> {
        match &self.kind {
            Kind::User { function, .. } => {
                function(input, inout, count, datatype);
                Ok(())
            }
            Kind::Predefined { operator, name, .. } => match datatype.operand() {
                Some(operand) if parnass_datatype::reduce(*operator, operand, input, inout, count) => Ok(()),
                operand => Err(undefined(*operator, name, operand, datatype)),
            },
        }
    }

    /// MPI_Reduce_local: checks, then combines.
    pub fn reduce_local(
        &self,
        datatype: &Arc<Datatype>,
        input: UserAddress,
        inout: UserAddress,
        count: u64,
    ) -> Result<()> {
        self.require_defined_on(datatype)?;
        datatype.require_committed()?;
        if count == 0 {
            return Ok(());
        }
        if input == inout && datatype.layout().size() > 0 {
            return Err(Error::new(MPI_ERR_ARG, "inbuf and inoutbuf are the same; give two buffers"));
        }
        self.reduce(datatype, input, inout, count)
    }
}

#[cold]
fn undefined(operator: Operator, name: &str, operand: Option<Operand>, datatype: &Datatype) -> Error {
    let wanted = match operator {
        Operator::Max | Operator::Min => "integer and floating-point types",
        Operator::Sum | Operator::Product => "integer, floating-point and complex types",
        Operator::LogicalAnd | Operator::LogicalOr | Operator::LogicalXor => "integer and logical types",
        Operator::BitwiseAnd | Operator::BitwiseOr | Operator::BitwiseXor => "integer types and MPI_BYTE",
        Operator::MinLocation | Operator::MaxLocation => "pairs of value and index such as MPI_DOUBLE_INT",
        Operator::Replace | Operator::Nothing => "predefined types",
    };
    let hint = match operand {
        None => "; a derived datatype needs an operation made by MPI_Op_create",
        Some(_) => "",
    };
    let message = format!(
        "the operation {name} is not defined on the datatype {}; it takes {wanted}{hint}",
        datatype.description()
    );
    Error::new(MPI_ERR_OP, message)
}

impl fmt::Debug for Op {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Op {}", self.name())
    }
}

/// The predefined operations.
#[derive(Debug)]
pub struct PredefinedOps {
    /// By handle value minus [`FIRST`].
    table: Box<[Option<Arc<Op>>]>,
}

impl Default for PredefinedOps {
    fn default() -> Self {
        let mut table = vec![None; END - FIRST];
        for &(handle, name, operator) in TABLE {
            table[handle - FIRST] = Some(Arc::new(Op { kind: Kind::Predefined { handle, name, operator } }));
        }
        PredefinedOps { table: table.into() }
    }
}

impl PredefinedOps {
    /// The operation with this handle value, if it is one of a predefined operation (MPI_OP_NULL is not).
    #[inline]
    pub fn get(&self, handle: usize) -> Option<&Arc<Op>> {
        self.table.get(handle.wrapping_sub(FIRST))?.as_ref()
    }

    /// All places from MPI_OP_NULL on, by handle value; empty where no operation has that value.
    pub fn table(&self) -> &[Option<Arc<Op>>] {
        &self.table
    }

    /// The operation of an operator.
    pub fn of(&self, wanted: Operator) -> &Arc<Op> {
        let entry = TABLE
            .iter()
            .find(|(_, _, operator)| *operator == wanted)
            .expect("every operator is in the table");
        self.get(entry.0).expect("the table has every handle")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::PredefinedDatatypes;
    use parnass_base::Scratch;

    fn scratch(bytes: &[u8]) -> Scratch {
        let scratch = Scratch::new(bytes.len());
        scratch.address().write(bytes);
        scratch
    }

    #[test]
    fn sums_of_int() {
        let (ops, datatypes) = (PredefinedOps::default(), PredefinedDatatypes::default());
        let input = scratch(&[1_i32, 2, 3].map(i32::to_ne_bytes).concat());
        let inout = scratch(&[10_i32, 20, 30].map(i32::to_ne_bytes).concat());
        ops.get(0x21).unwrap().reduce_local(datatypes.int(), input.address(), inout.address(), 3).unwrap();
        let mut result = [0; 12];
        inout.address().read(&mut result);
        assert_eq!(result.to_vec(), [11_i32, 22, 33].map(i32::to_ne_bytes).concat());
    }

    #[test]
    fn undefined_pairs_name_both() {
        let (ops, datatypes) = (PredefinedOps::default(), PredefinedDatatypes::default());
        let double = datatypes.get(0x214).unwrap();
        let error = ops.get(0x28).unwrap().require_defined_on(double).unwrap_err();
        assert_eq!(error.class(), MPI_ERR_OP);
        assert!(error.message().contains("MPI_BAND") && error.message().contains("MPI_DOUBLE"), "{error}");
        assert!(ops.get(0x38).unwrap().require_defined_on(double).is_err());
        assert!(ops.get(0x38).unwrap().require_defined_on(datatypes.get(0x229).unwrap()).is_ok());
        assert!(
            ops.get(0x3c).unwrap().require_defined_on(double).is_err(),
            "MPI_REPLACE is not for reductions"
        );
        assert!(ops.get(0x20).is_none());
    }

    #[test]
    fn user_functions_get_what_they_asked_for() {
        let datatypes = PredefinedDatatypes::default();
        let concatenate: Box<UserFunction> = Box::new(|input, inout, count, datatype| {
            assert_eq!((count, datatype.predefined()), (4, Some(0x247)));
            let (mut left, mut right) = ([0; 4], [0; 4]);
            input.read(&mut left);
            inout.read(&mut right);
            inout.write(&[left[0], left[1], right[0], right[1]]);
        });
        let op = Op::user(concatenate, false);
        let (input, inout) = (scratch(b"abcd"), scratch(b"efgh"));
        op.reduce(datatypes.byte(), input.address(), inout.address(), 4).unwrap();
        let mut result = [0; 4];
        inout.address().read(&mut result);
        assert_eq!(&result, b"abef");
        assert!(!op.is_commutative());
        assert!(op.require_mortal().is_ok());
    }
}
