// mpi.h in C++: prototypes have C linkage, handles are usable as values.
#include <mpi.h>

#include <cstdio>
#include <map>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    std::map<MPI_Comm, int> ranks;
    for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF})
        MPI_Comm_rank(comm, &ranks[comm]);
    int value = ranks[MPI_COMM_SELF] + 1, sum = 0, size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (ranks[MPI_COMM_WORLD] == 0 && sum == size)
        std::puts("include: ok");
    MPI_Finalize();
    return sum == size ? 0 : 1;
}
