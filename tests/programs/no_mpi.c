/* A program that never calls MPI, under mpiexec all the same. */
#include <stdio.h>

int main(void)
{
    puts("no MPI here");
    return 0;
}
