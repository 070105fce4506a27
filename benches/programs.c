/* Whole programs in little: what applications do between their calls of MPI, and how long a step of theirs takes with it. The work is the same on any number
 * of ranks, so where there are more of them than cores, the best that can be had is the time of as many ranks as cores. Each checks what it has computed. */
#include "bench.h"

#include <math.h>

enum { most_ranks = 64 };

static void *zeroed(size_t bytes)
{
    void *data = memory(bytes ? bytes : 1);
    memset(data, 0, bytes);
    return data;
}

/* Times a step, and then has the program check its results. */
static void time_program(const char *what, void (*step)(void *), int (*is_right)(void *), void *context)
{
    char name[64];
    int right, all;
    snprintf(name, sizeof name, "program-%s-%d-ranks", what, size);
    double seconds = seconds_per_call(step, context);
    right = is_right(context);
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all)
        result(name, 0, seconds * 1e6, "us");
    else
        note(name, "the program has computed something wrong");
}

/* Conjugate gradients for Poisson's equation in a square that is shared by rows: in each iteration two sums over all ranks, and rows exchanged with two
 * neighbours. */
enum { side = 192 };

struct gradients {
    int rows;
    double *x, *r, *p, *q, rr;
};

static double dot(const double *a, const double *b, int count)
{
    double sum = 0, all;
    for (int index = 0; index < count; index++)
        sum += a[index] * b[index];
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void start_gradients(struct gradients *it)
{
    int count = it->rows * side;
    for (int index = 0; index < count; index++) {
        it->x[index] = 0;
        it->r[index] = it->p[side + index] = 1;
    }
    it->rr = dot(it->r, it->r, count);
}

static void exchange_rows(double *p, int rows)
{
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Request requests[4];
    MPI_Irecv(p, side, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(p + (rows + 1) * side, side, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(p + side, side, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(p + rows * side, side, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void step_gradients(void *context)
{
    struct gradients *it = context;
    int count = it->rows * side;
    if (it->rr < 1e-12)
        start_gradients(it);
    double *p = it->p + side;
    exchange_rows(it->p, it->rows);
    for (int row = 0; row < it->rows; row++)
        for (int column = 0; column < side; column++) {
            int at = row * side + column;
            double left = column > 0 ? p[at - 1] : 0, right = column < side - 1 ? p[at + 1] : 0;
            it->q[at] = 4 * p[at] - left - right - p[at - side] - p[at + side];
        }
    double alpha = it->rr / dot(p, it->q, count);
    for (int index = 0; index < count; index++) {
        it->x[index] += alpha * p[index];
        it->r[index] -= alpha * it->q[index];
    }
    double rr = dot(it->r, it->r, count), beta = rr / it->rr;
    for (int index = 0; index < count; index++)
        p[index] = it->r[index] + beta * p[index];
    it->rr = rr;
}

static int gradients_are_right(void *context)
{
    struct gradients *it = context;
    start_gradients(it);
    for (int step = 0; step < 3 * side && it->rr > 1e-6; step++)
        step_gradients(it);
    return it->rr <= 1e-6;
}

static void time_gradients(void)
{
    int rows = side * (rank + 1) / size - side * rank / size;
    size_t bytes = sizeof(double) * side * (size_t)(rows + 2);
    struct gradients it = {rows, zeroed(bytes), zeroed(bytes), zeroed(bytes), zeroed(bytes), 0};
    time_program("gradients", step_gradients, gradients_are_right, &it);
}

/* Heat in a block: faces exchanged with the six neighbours in a periodic grid of ranks, by datatypes, and a stencil of seven points. */
enum { edge = 48 };

struct block {
    MPI_Comm grid;
    int extent[3], before[3], behind[3], now;
    double *values[2], heat;
    /* Along each axis: the neighbour's plane before the first, the first, the last, the neighbour's behind the last. */
    MPI_Datatype faces[3][4];
};

static double heat_of(const struct block *it)
{
    const int *n = it->extent;
    double sum = 0, heat;
    for (int i = 1; i <= n[0]; i++)
        for (int j = 1; j <= n[1]; j++)
            for (int k = 1; k <= n[2]; k++)
                sum += it->values[it->now][((long)i * (n[1] + 2) + j) * (n[2] + 2) + k];
    MPI_Allreduce(&sum, &heat, 1, MPI_DOUBLE, MPI_SUM, it->grid);
    return heat;
}

static void step_block(void *context)
{
    struct block *it = context;
    const int *n = it->extent;
    long plane = (long)(n[1] + 2) * (n[2] + 2), line = n[2] + 2;
    double *old = it->values[it->now], *new = it->values[1 - it->now];
    for (int axis = 0; axis < 3; axis++) {
        MPI_Datatype *face = it->faces[axis];
        MPI_Sendrecv(old, 1, face[1], it->before[axis], 0, old, 1, face[3], it->behind[axis], 0, it->grid, MPI_STATUS_IGNORE);
        MPI_Sendrecv(old, 1, face[2], it->behind[axis], 1, old, 1, face[0], it->before[axis], 1, it->grid, MPI_STATUS_IGNORE);
    }
    for (int i = 1; i <= n[0]; i++)
        for (int j = 1; j <= n[1]; j++)
            for (int k = 1; k <= n[2]; k++) {
                long at = i * plane + j * line + k;
                new[at] = (old[at - 1] + old[at + 1] + old[at - line] + old[at + line] + old[at - plane] + old[at + plane]) / 6;
            }
    it->now = 1 - it->now;
}

/* No heat is lost. */
static int block_is_right(void *context)
{
    const struct block *it = context;
    return fabs(heat_of(it) / it->heat - 1) < 1e-9;
}

static void time_block(void)
{
    struct block it = {.now = 0};
    int dims[3] = {0, 0, 0}, periodic[3] = {1, 1, 1}, place[3], all[3];
    MPI_Dims_create(size, 3, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periodic, 0, &it.grid);
    MPI_Cart_coords(it.grid, rank, 3, place);
    for (int axis = 0; axis < 3; axis++) {
        MPI_Cart_shift(it.grid, axis, 1, &it.before[axis], &it.behind[axis]);
        it.extent[axis] = edge * (place[axis] + 1) / dims[axis] - edge * place[axis] / dims[axis];
        all[axis] = it.extent[axis] + 2;
    }
    for (int axis = 0; axis < 3; axis++)
        for (int which = 0; which < 4; which++) {
            int at[4] = {0, 1, it.extent[axis], it.extent[axis] + 1};
            int extents[3] = {it.extent[0], it.extent[1], it.extent[2]}, starts[3] = {1, 1, 1};
            extents[axis] = 1;
            starts[axis] = at[which];
            MPI_Type_create_subarray(3, all, extents, starts, MPI_ORDER_C, MPI_DOUBLE, &it.faces[axis][which]);
            MPI_Type_commit(&it.faces[axis][which]);
        }
    size_t bytes = sizeof(double) * (size_t)all[0] * (size_t)all[1] * (size_t)all[2];
    it.values[0] = zeroed(bytes);
    it.values[1] = zeroed(bytes);
    for (size_t index = 0; index < bytes / sizeof(double); index++)
        it.values[0][index] = (double)(index % 11);
    it.heat = heat_of(&it);
    time_program("block", step_block, block_is_right, &it);
    for (int axis = 0; axis < 3; axis++)
        for (int which = 0; which < 4; which++)
            MPI_Type_free(&it.faces[axis][which]);
    MPI_Comm_free(&it.grid);
}

/* A Fourier transform of a square of complex numbers, there and back: of the rows, transposed by MPI_Alltoall, and of the columns. */
enum { waves = 128 };

struct transform {
    int rows;
    double (*a)[2], (*b)[2], roots[waves][2];
};

static void transform_row(double (*row)[2], double (*roots)[2], double sign)
{
    for (int i = 1, j = 0; i < waves; i++) {
        int bit = waves >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        for (int part = 0; i < j && part < 2; part++) {
            double kept = row[i][part];
            row[i][part] = row[j][part];
            row[j][part] = kept;
        }
    }
    for (int length = 2; length <= waves; length *= 2)
        for (int start = 0; start < waves; start += length)
            for (int k = 0; k < length / 2; k++) {
                double *w = roots[k * (waves / length)], *u = row[start + k], *v = row[start + k + length / 2];
                double real = v[0] * w[0] - v[1] * sign * w[1], imaginary = v[0] * sign * w[1] + v[1] * w[0];
                v[0] = u[0] - real;
                v[1] = u[1] - imaginary;
                u[0] += real;
                u[1] += imaginary;
            }
}

static void transpose(struct transform *it)
{
    int rows = it->rows;
    for (int to = 0; to < size; to++)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < rows; j++)
                memcpy(it->b[(to * rows + j) * rows + i], it->a[i * waves + to * rows + j], sizeof *it->a);
    MPI_Alltoall(it->b, 2 * rows * rows, MPI_DOUBLE, it->a, 2 * rows * rows, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++)
        for (int i = 0; i < rows; i++)
            memcpy(it->b[i * waves + from * rows], it->a[(from * rows + i) * rows], (size_t)rows * sizeof *it->a);
    void *other = it->a;
    it->a = it->b;
    it->b = other;
}

static void step_transform(void *context)
{
    struct transform *it = context;
    for (int pass = 0; pass < 4; pass++) {
        for (int row = 0; row < it->rows; row++)
            transform_row(it->a + row * waves, it->roots, pass < 2 ? 1 : -1);
        transpose(it);
    }
    for (int index = 0; index < it->rows * waves; index++) {
        it->a[index][0] /= waves * waves;
        it->a[index][1] /= waves * waves;
    }
}

static double first_value(const struct transform *it, int index) { return (rank * it->rows * waves + index) % 17; }

static int transform_is_right(void *context)
{
    const struct transform *it = context;
    int right = 1;
    for (int index = 0; index < it->rows * waves; index++)
        right = right && fabs(it->a[index][0] - first_value(it, index)) < 1e-6 && fabs(it->a[index][1]) < 1e-6;
    return right;
}

static void time_transform(void)
{
    struct transform it = {.rows = waves / size};
    size_t bytes = sizeof *it.a * waves * (size_t)it.rows;
    it.a = zeroed(bytes);
    it.b = zeroed(bytes);
    for (int index = 0; index < waves; index++) {
        it.roots[index][0] = cos(2 * acos(-1) * index / waves);
        it.roots[index][1] = -sin(2 * acos(-1) * index / waves);
    }
    for (int index = 0; index < it.rows * waves; index++)
        it.a[index][0] = first_value(&it, index);
    time_program("transform", step_transform, transform_is_right, &it);
}

/* Numbers sorted by samples: all learn where to cut, and send to all what is theirs, as many as it happens to be. */
enum { numbers = 1 << 16, samples = 16 };

struct sorting {
    int count, received;
    uint64_t seed;
    int *mine, *sorted;
};

static int compare_ints(const void *left, const void *right)
{
    int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

/* By digits of eight bits. The result is where it was. */
static void sort_ints(int *values, int count, int *spare)
{
    for (int shift = 0; shift < 32; shift += 8) {
        int first[257] = {0};
        for (int index = 0; index < count; index++)
            first[((unsigned)values[index] >> shift & 255) + 1]++;
        for (int digit = 0; digit < 256; digit++)
            first[digit + 1] += first[digit];
        for (int index = 0; index < count; index++)
            spare[first[(unsigned)values[index] >> shift & 255]++] = values[index];
        int *other = values;
        values = spare;
        spare = other;
    }
}

static void step_sorting(void *context)
{
    struct sorting *it = context;
    int mine[samples], all[samples * most_ranks], out[most_ranks], in[most_ranks], from[most_ranks], to[most_ranks];
    for (int index = 0; index < it->count; index++) {
        it->seed = work(it->seed, 1);
        it->mine[index] = (int)(it->seed >> 33);
    }
    sort_ints(it->mine, it->count, it->sorted);
    for (int index = 0; index < samples; index++)
        mine[index] = it->mine[(long)it->count * index / samples];
    MPI_Allgather(mine, samples, MPI_INT, all, samples, MPI_INT, MPI_COMM_WORLD);
    qsort(all, (size_t)(samples * size), sizeof *all, compare_ints);
    for (int peer = 0, at = 0; peer < size; peer++) {
        to[peer] = at;
        while (at < it->count && (peer == size - 1 || it->mine[at] < all[samples * (peer + 1)]))
            at++;
        out[peer] = at - to[peer];
    }
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
    it->received = 0;
    for (int peer = 0; peer < size; peer++) {
        from[peer] = it->received;
        it->received += in[peer];
    }
    MPI_Alltoallv(it->mine, out, to, MPI_INT, it->sorted, in, from, MPI_INT, MPI_COMM_WORLD);
    sort_ints(it->sorted, it->received, it->mine);
}

static int sorting_is_right(void *context)
{
    const struct sorting *it = context;
    int all, lasts[most_ranks], last = it->received > 0 ? it->sorted[it->received - 1] : 0, right = 1;
    MPI_Allreduce(&it->received, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allgather(&last, 1, MPI_INT, lasts, 1, MPI_INT, MPI_COMM_WORLD);
    for (int index = 1; index < it->received; index++)
        right = right && it->sorted[index - 1] <= it->sorted[index];
    return right && all == it->count * size && (rank == 0 || it->received == 0 || lasts[rank - 1] <= it->sorted[0]);
}

static void time_sorting(void)
{
    size_t bytes = sizeof(int) * numbers;
    struct sorting it = {numbers / size, 0, 88172645463325252u + (uint64_t)rank * 977, zeroed(bytes), zeroed(bytes)};
    time_program("sorting", step_sorting, sorting_is_right, &it);
}

/* Rank 0 hands tasks to whoever is free, and takes their results as they come; the others work, on some longer than on others. */
enum { tasks = 64, task_tag = 1, end_tag = 2 };

struct farm {
    double rate;
    long sum;
};

static void hand_out(struct farm *it)
{
    int next = 0, done[2];
    it->sum = 0;
    for (int worker = 1; worker < size; worker++, next++)
        MPI_Send(&next, 1, MPI_INT, worker, task_tag, MPI_COMM_WORLD);
    for (int working = size - 1; working > 0;) {
        MPI_Status status;
        MPI_Recv(done, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        it->sum += done[1];
        if (next < tasks) {
            MPI_Send(&next, 1, MPI_INT, status.MPI_SOURCE, task_tag, MPI_COMM_WORLD);
            next++;
        } else {
            MPI_Send(NULL, 0, MPI_INT, status.MPI_SOURCE, end_tag, MPI_COMM_WORLD);
            working--;
        }
    }
}

static void step_farm(void *context)
{
    struct farm *it = context;
    if (rank == 0) {
        hand_out(it);
        return;
    }
    for (;;) {
        int task = 0;
        MPI_Status status;
        MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == end_tag)
            return;
        /* 5 to 35 us. */
        bench_sink = work(7, (long)(it->rate * 5e-6 * (1 + task % 7)));
        int done[2] = {task, task * task};
        MPI_Send(done, 2, MPI_INT, 0, task_tag, MPI_COMM_WORLD);
    }
}

static int farm_is_right(void *context)
{
    const struct farm *it = context;
    return rank != 0 || it->sum == (long)(tasks - 1) * tasks * (2 * tasks - 1) / 6;
}

static void time_farm(void)
{
    struct farm it = {work_rate(), 0};
    MPI_Bcast(&it.rate, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    time_program("farm", step_farm, farm_is_right, &it);
}

/* Gaussian elimination, the columns dealt to the ranks in turn: each step broadcasts a column of factors, one shorter than the last. */
enum { order = 160 };

struct elimination {
    int columns;
    double *a, *factors;
};

static double matrix(int row, int column) { return row == column ? order : 1 / (1. + row + column); }

static void step_elimination(void *context)
{
    struct elimination *it = context;
    for (int local = 0; local < it->columns; local++)
        for (int row = 0; row < order; row++)
            it->a[local * order + row] = matrix(row, local * size + rank);
    for (int step = 0; step < order; step++) {
        int owner = step % size, local = step / size;
        if (owner == rank)
            for (int row = step + 1; row < order; row++)
                it->factors[row] = it->a[local * order + row] /= it->a[local * order + step];
        MPI_Bcast(it->factors + step + 1, order - step - 1, MPI_DOUBLE, owner, MPI_COMM_WORLD);
        for (int other = local + (rank <= owner); other < it->columns; other++) {
            double *a = it->a + other * order, top = a[step];
            for (int row = step + 1; row < order; row++)
                a[row] -= top * it->factors[row];
        }
    }
}

/* The last row times the last column of the factors is the last number of the matrix. */
static int elimination_is_right(void *context)
{
    const struct elimination *it = context;
    double row[order] = {0}, all[order];
    for (int local = 0; local < it->columns; local++)
        row[local * size + rank] = it->a[local * order + order - 1];
    MPI_Allreduce(row, all, order, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank != (order - 1) % size)
        return 1;
    const double *column = it->a + (it->columns - 1) * order;
    double product = column[order - 1];
    for (int step = 0; step < order - 1; step++)
        product += all[step] * column[step];
    return fabs(product - matrix(order - 1, order - 1)) < 1e-9;
}

static void time_elimination(void)
{
    int columns = (order - rank + size - 1) / size;
    struct elimination it = {columns, zeroed(sizeof(double) * order * (size_t)columns), zeroed(sizeof(double) * order)};
    time_program("elimination", step_elimination, elimination_is_right, &it);
}

/* Particles in a ring of boxes: those that leave a box go to its neighbour, who asks by MPI_Probe how many come. */
enum { particles = 8192 };

struct particle {
    double place, speed;
};

struct boxes {
    int count;
    struct particle *all, *leaving[2];
};

static void step_boxes(void *context)
{
    struct boxes *it = context;
    int neighbours[2] = {(rank + size - 1) % size, (rank + 1) % size}, gone[2] = {0, 0}, kept = 0;
    MPI_Request requests[2];
    for (int index = 0; index < it->count; index++) {
        struct particle one = it->all[index];
        one.place += one.speed;
        if (one.place >= 0 && one.place < 1) {
            it->all[kept++] = one;
        } else {
            int way = one.place >= 1;
            one.place += way ? -1 : 1;
            it->leaving[way][gone[way]++] = one;
        }
    }
    for (int way = 0; way < 2; way++)
        MPI_Isend(it->leaving[way], 2 * gone[way], MPI_DOUBLE, neighbours[way], way, MPI_COMM_WORLD, &requests[way]);
    for (int way = 0; way < 2; way++) {
        int doubles;
        MPI_Status status;
        MPI_Probe(neighbours[1 - way], way, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_DOUBLE, &doubles);
        MPI_Recv(it->all + kept, doubles, MPI_DOUBLE, neighbours[1 - way], way, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        kept += doubles / 2;
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    it->count = kept;
}

static int boxes_are_right(void *context)
{
    const struct boxes *it = context;
    int all;
    MPI_Allreduce(&it->count, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all == particles / size * size;
}

static void time_boxes(void)
{
    size_t bytes = sizeof(struct particle) * particles;
    struct boxes it = {particles / size, zeroed(bytes), {zeroed(bytes), zeroed(bytes)}};
    for (int index = 0; index < it.count; index++)
        it.all[index] = (struct particle){(index + .5) / it.count, ((index * 37 + rank) % 101 - 50) * 1e-3};
    time_program("boxes", step_boxes, boxes_are_right, &it);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv);
    if (size > most_ranks || waves % size != 0) {
        note("program", "this takes 1, 2, 4, 8, 16, 32 or 64 ranks");
    } else {
        time_gradients();
        time_block();
        time_transform();
        time_sorting();
        if (size > 1)
            time_farm();
        time_elimination();
        time_boxes();
    }
    MPI_Finalize();
    return 0;
}
