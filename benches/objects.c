/* What programs do beside communication: objects made and freed, communicators and windows by all ranks together; attributes looked up, as libraries do that
 * keep what they know of a communicator there; and halves of exchanges that go nowhere, as at the borders of a grid. */
#include "bench.h"

enum { bytes = 65536 };

static unsigned char *memory_of_window;
static int keyval;

static void duplicate(void *context)
{
    (void)context;
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_free(&copy);
}

static void split(void *context)
{
    (void)context;
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
    MPI_Comm_free(&part);
}

/* With what the first collective operation on it costs. */
static void duplicate_and_use(void *context)
{
    (void)context;
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Barrier(copy);
    MPI_Comm_free(&copy);
}

static void create_window(void *context)
{
    (void)context;
    MPI_Win window;
    MPI_Win_create(memory_of_window, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_free(&window);
}

static void allocate_window(void *context)
{
    (void)context;
    void *base;
    MPI_Win window;
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    MPI_Win_free(&window);
}

static void make_vector(void *context)
{
    (void)context;
    MPI_Datatype type;
    MPI_Type_vector(10, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&type);
}

static void make_box(void *context)
{
    (void)context;
    static const int extents[3] = {10, 10, 10}, parts[3] = {3, 4, 5}, starts[3] = {1, 2, 3};
    MPI_Datatype type;
    MPI_Type_create_subarray(3, extents, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&type);
}

static void get_attribute(void *context)
{
    (void)context;
    void *value;
    int found;
    MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &found);
}

static void exchange_nowhere(void *context)
{
    (void)context;
    MPI_Sendrecv(memory_of_window, 8, MPI_BYTE, MPI_PROC_NULL, 0, memory_of_window + 8, 8, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv);
    memory_of_window = memory(bytes);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, memory_of_window);
    result("duplicate-communicator", 0, seconds_per_call(duplicate, NULL) * 1e6, "us");
    result("duplicate-communicator-and-use", 0, seconds_per_call(duplicate_and_use, NULL) * 1e6, "us");
    result("split-communicator", 0, seconds_per_call(split, NULL) * 1e6, "us");
    result("create-window", bytes, seconds_per_call(create_window, NULL) * 1e6, "us");
    result("allocate-window", bytes, seconds_per_call(allocate_window, NULL) * 1e6, "us");
    result("make-vector-type", 0, seconds_per_call(make_vector, NULL) * 1e9, "ns");
    result("make-subarray-type", 0, seconds_per_call(make_box, NULL) * 1e9, "ns");
    result("get-attribute", 0, seconds_per_call(get_attribute, NULL) * 1e9, "ns");
    result("exchange-nowhere", 8, seconds_per_call(exchange_nowhere, NULL) * 1e9, "ns");
    MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
    MPI_Comm_free_keyval(&keyval);
    MPI_Finalize();
    return 0;
}
