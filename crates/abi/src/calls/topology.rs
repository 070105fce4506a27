//! Bodies of procedures: process topologies (MPI 5.0, chapter 8).

use super::prelude::*;

/// MPI_Dims_create.
pub fn dims_create(_call: &Call, nnodes: i32, _ndims: i64, dims: &mut OutSlice<'_, i32>) -> Result<()> {
    let mut dimensions: Vec<i32> = (0..dims.len()).map(|index| dims.get(index)).collect();
    parnass_mpi::topology::balance(nnodes, &mut dimensions)?;
    dimensions.iter().enumerate().for_each(|(index, dimension)| dims.set(index, *dimension));
    Ok(())
}
