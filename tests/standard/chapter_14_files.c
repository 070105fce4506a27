/* MPI 5.0, chapter 14: every way to write and to read a file, with counts of both sizes; its hints and extents. */
#define NAME with_int
#include "chapter_14_files.inc"
#undef NAME
#undef ROUND
#undef SEEK
#undef REWIND
#undef STATUS
#define LARGE
#define NAME with_count
#include "chapter_14_files.inc"

static int asked;

static int file_extent(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
    MPI_Aint lower;
    ++*(int *)extra;
    return MPI_Type_get_extent(type, &lower, extent);
}

/* A representation without conversions: what is in the file is what is in memory. */
static void own_representation(MPI_File file)
{
    int out[2] = {check_rank, -check_rank}, in[2] = {-1, -1};
    SUCCEEDS(MPI_Register_datarep_c("chapter 14", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, file_extent, &asked));
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "chapter 14", MPI_INFO_NULL));
    MPI_Aint extent = -1;
    SUCCEEDS(MPI_File_get_type_extent(file, MPI_INT, &extent));
    CHECK_EQUAL(extent, sizeof(int));
    CHECK(asked > 0, "the program's function tells the extent");
    SUCCEEDS(MPI_File_write_at_all(file, 2 * check_rank, out, 2, MPI_INT, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_File_read_at_all(file, 2 * check_rank, in, 2, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(in[0] == out[0] && in[1] == out[1], "read back %d, %d", in[0], in[1]);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char path[4096];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/chapter_14", folder ? folder : "/tmp");
    MPI_File file;
    SUCCEEDS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                           &file));
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    with_int(file);
    with_count(file);

    MPI_Aint extent;
    MPI_Count long_extent;
    SUCCEEDS(MPI_File_get_type_extent(file, MPI_INT, &extent));
    SUCCEEDS(MPI_File_get_type_extent_c(file, MPI_INT, &long_extent));
    CHECK_EQUAL(extent, sizeof(int));
    CHECK_EQUAL(long_extent, sizeof(int));
    MPI_Info hints;
    SUCCEEDS(MPI_Info_create(&hints));
    SUCCEEDS(MPI_Info_set(hints, "cb_buffer_size", "65536"));
    SUCCEEDS(MPI_File_set_info(file, hints));
    SUCCEEDS(MPI_Info_free(&hints));
    SUCCEEDS(MPI_File_get_info(file, &hints));
    CHECK(hints != MPI_INFO_NULL, "a file has hints");
    SUCCEEDS(MPI_Info_free(&hints));
    own_representation(file);
    SUCCEEDS(MPI_File_close(&file));
    return check_end("chapter_14_files");
}
