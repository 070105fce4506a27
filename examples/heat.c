/* The heat equation on a plate, and a picture of it.
 *
 *   mpicc heat.c -O2 -o heat -lm && mpiexec -n 4 ./heat [STEPS [PICTURE.png]]
 *
 * The plate is cut into bands of rows, one for each rank. In each step a rank sends its edge rows to its neighbours, updates its inner
 * rows while they travel, and then its edges. The sources keep their temperature. At the end rank 0 gathers the plate.
 */
#include <math.h>
#include <mpi.h>

#include "picture.h"

enum { width = 480, height = 320 };

/* The temperature that a source keeps at (x, y), or -1 where there is none. */
static double source(int x, int y)
{
    double ring = hypot(x - 150, y - 150);
    if (ring > 62 && ring < 72)
        return 1.0;
    if (hypot(x - 350, y - 90) < 34)
        return 0.85;
    if (x > 250 && x < 440 && abs(y - 230 - (int)(18 * sin(x / 14.0))) < 5)
        return 0.65;
    if (hypot(x - 150, y - 150) < 9 || (abs(x - 350) < 60 && abs(y - 285) < 4))
        return 0.0;
    return -1;
}

/* One step for the rows from `from` to before `until`; `keeps` is 0 where a source holds the temperature, and 0.24 elsewhere. */
static void update(const double *old, double *new, const double *keeps, int from, int until)
{
    for (int row = from; row < until; row++)
        for (int cell = row * width + 1; cell < (row + 1) * width - 1; cell++)
            new[cell] = old[cell] + keeps[cell] * (old[cell - 1] + old[cell + 1] + old[cell - width] + old[cell + width] - 4 * old[cell]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, steps = argc > 1 ? atoi(argv[1]) : 4000;
    const char *path = argc > 2 ? argv[2] : "heat.png";
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double start = MPI_Wtime();

    int *counts = malloc((size_t)size * sizeof *counts), *places = malloc((size_t)size * sizeof *places);
    for (int other = 0; other < size; other++) {
        places[other] = height * other / size * width;
        counts[other] = height * (other + 1) / size * width - places[other];
    }
    int rows = counts[rank] / width, first_row = places[rank] / width;
    if (height < size) {
        if (rank == 0)
            fprintf(stderr, "heat: %d rows are too few for %d ranks\n", height, size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;

    /* One row above and one below belong to the neighbours. */
    double *old = calloc((size_t)(rows + 2) * width, sizeof *old), *new = calloc((size_t)(rows + 2) * width, sizeof *new);
    double *keeps = calloc((size_t)(rows + 2) * width, sizeof *keeps);
    for (int row = 1; row <= rows; row++)
        for (int x = 0; x < width; x++) {
            double fixed = source(x, first_row + row - 1);
            old[row * width + x] = new[row * width + x] = fixed >= 0 ? fixed : 0.05;
            keeps[row * width + x] = fixed >= 0 ? 0 : 0.24;
        }
    int from = first_row == 0 ? 2 : 1, until = first_row + rows == height ? rows : rows + 1;
    for (int step = 0; step < steps; step++) {
        MPI_Request requests[4];
        MPI_Irecv(old, width, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(old + (rows + 1) * width, width, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Isend(old + width, width, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(old + rows * width, width, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, &requests[3]);
        update(old, new, keeps, 2, rows);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        if (from == 1)
            update(old, new, keeps, 1, 2);
        if (until == rows + 1 && rows > 1)
            update(old, new, keeps, rows, rows + 1);
        double *swap = old;
        old = new;
        new = swap;
    }

    double mine = 0, total;
    for (int cell = width; cell < (rows + 1) * width; cell++)
        mine += old[cell];
    MPI_Reduce(&mine, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    double *plate = rank == 0 ? malloc(sizeof *plate * width * height) : NULL;
    MPI_Gatherv(old + width, counts[rank], MPI_DOUBLE, plate, counts, places, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    int status = 0;
    if (rank == 0) {
        unsigned char *pixels = malloc(3 * width * height);
        for (int cell = 0; cell < width * height; cell++)
            picture_heat(plate[cell], pixels + 3 * cell);
        status = picture_write(path, pixels, width, height);
        if (status == 0)
            printf("heat: %d steps on %d ranks in %.2f s, mean temperature %.6f, picture in %s\n", steps, size,
                   MPI_Wtime() - start, total / (width * height), path);
        else
            perror(path);
        free(pixels);
    }
    MPI_Finalize();
    return status != 0;
}
