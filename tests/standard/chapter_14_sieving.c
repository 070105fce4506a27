/* MPI 5.0, chapter 14: runs of a file that lie close together, written and read as one; what lies between them belongs to others. */
#include "../programs/check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RUN = 8, RUNS = 3000, BYTES = RUN * RUNS };

static MPI_Comm comm = MPI_COMM_WORLD;
static char path[4096];
static unsigned char out[BYTES], in[BYTES], spread[2 * BYTES];

static long size_on_disk(void)
{
    struct stat status;
    return stat(path, &status) == 0 ? (long)status.st_size : -1;
}

/* Every rank sees RUN bytes of each tile of RUN * ranks + gap bytes. */
static MPI_Datatype tile(int gap)
{
    MPI_Datatype run, placed, tile;
    MPI_Aint place = (MPI_Aint)RUN * check_rank;
    MPI_Type_contiguous(RUN, MPI_BYTE, &run);
    MPI_Type_create_hindexed_block(1, 1, &place, run, &placed);
    MPI_Type_create_resized(placed, 0, (MPI_Aint)RUN * check_size + gap, &tile);
    MPI_Type_commit(&tile);
    MPI_Type_free(&run);
    MPI_Type_free(&placed);
    return tile;
}

static MPI_Info hints(const char *writes, const char *reads, const char *bytes)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_ds_write", writes);
    MPI_Info_set(info, "romio_ds_read", reads);
    MPI_Info_set(info, "ind_wr_buffer_size", bytes);
    MPI_Info_set(info, "ind_rd_buffer_size", bytes);
    return info;
}

static MPI_File fresh(int direction, MPI_Info info, MPI_Datatype filetype)
{
    MPI_File file;
    SUCCEEDS(MPI_File_open(comm, path, direction | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, info, &file));
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    return file;
}

static void compare(const char *what, int bytes)
{
    for (int index = 0; index < bytes; index++)
        CHECK(in[index] == out[index], "%s: byte %d is %d, expected %d", what, index, in[index], out[index]);
    memset(in, 0, sizeof in);
}

static void shown(MPI_File file, const char *key, const char *wanted)
{
    MPI_Info used;
    char value[64] = "";
    int found = 0, room = sizeof value;
    SUCCEEDS(MPI_File_get_info(file, &used));
    MPI_Info_get_string(used, key, &room, value, &found);
    CHECK(found && strcmp(value, wanted) == 0, "%s is \"%s\", expected \"%s\"", key, value, wanted);
    MPI_Info_free(&used);
}

/* All write at once, round after round, each its own bytes of every tile: none may be lost, however they are written. */
static void side_by_side(MPI_Info info, int gap, int rounds)
{
    MPI_Datatype filetype = tile(gap);
    MPI_File file = fresh(MPI_MODE_RDWR, info, filetype);
    for (int round = 0; round < rounds; round++) {
        fill_bytes(out, BYTES, check_mix(1000 * round + check_rank));
        MPI_Barrier(comm);
        /* Now the ends of the file move past each other, too. */
        SUCCEEDS(MPI_File_write_at(file, 0, out, BYTES / 3 / RUN * RUN, MPI_BYTE, MPI_STATUS_IGNORE));
        SUCCEEDS(MPI_File_write_at(file, BYTES / 3 / RUN * RUN, out + BYTES / 3 / RUN * RUN, BYTES - BYTES / 3 / RUN * RUN,
                                   MPI_BYTE, MPI_STATUS_IGNORE));
        MPI_Barrier(comm);
        SUCCEEDS(MPI_File_read_at(file, 0, in, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        compare("side by side", BYTES);
        /* What is between the tiles was written by nobody. */
        CHECK_EQUAL(size_on_disk(), (long)RUNS * (RUN * check_size + gap) - gap);
        FILE *plain = fopen(path, "rb");
        for (int index = 0; gap > 0 && index + 1 < RUNS; index += 97) {
            fseek(plain, (long)index * (RUN * check_size + gap) + RUN * check_size, SEEK_SET);
            for (int byte = 0; byte < gap; byte++)
                CHECK_EQUAL(fgetc(plain), 0);
        }
        fclose(plain);
        MPI_Barrier(comm);
        long length = round / 4 % 2 ? 12345 : 0;
        if (round % 4 == 3)
            SUCCEEDS(MPI_File_set_size(file, length));
    }
    SUCCEEDS(MPI_File_close(&file));
    MPI_Type_free(&filetype);
}

/* The same bytes by every kind of call, with gaps in memory too. */
static void every_form(MPI_Info info)
{
    MPI_Datatype filetype = tile(24), memory;
    MPI_File file = fresh(MPI_MODE_RDWR, info, filetype);
    MPI_Request request;
    MPI_Status status;
    int count;
    MPI_Type_vector(BYTES / 5, 5, 10, MPI_BYTE, &memory);
    MPI_Type_commit(&memory);
    for (int form = 0; form < 6; form++) {
        fill_bytes(out, BYTES, check_mix(100 * form + check_rank));
        for (int index = 0; index < BYTES; index++)
            spread[index / 5 * 10 + index % 5] = out[index];
        SUCCEEDS(MPI_File_seek(file, 0, MPI_SEEK_SET));
        if (form == 0)
            SUCCEEDS(MPI_File_write(file, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        else if (form == 1)
            SUCCEEDS(MPI_File_write(file, spread, 1, memory, MPI_STATUS_IGNORE));
        else if (form == 2)
            SUCCEEDS(MPI_File_write_all(file, spread, 1, memory, MPI_STATUS_IGNORE));
        else if (form == 3 || form == 4) {
            if (form == 4)
                SUCCEEDS(MPI_File_set_atomicity(file, 1));
            SUCCEEDS(MPI_File_iwrite_at(file, 0, out, BYTES, MPI_BYTE, &request));
            SUCCEEDS(MPI_Wait(&request, &status));
            MPI_Get_count(&status, MPI_BYTE, &count);
            CHECK_EQUAL(count, BYTES);
        } else {
            /* One rank's view behind the other's: the pointer is common. */
            SUCCEEDS(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
            for (int turn = 0; turn < check_size; turn++) {
                MPI_Barrier(comm);
                if (turn == check_rank)
                    SUCCEEDS(MPI_File_write_shared(file, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
            }
        }
        MPI_Barrier(comm);
        MPI_Offset start = form == 5 ? (MPI_Offset)BYTES * check_rank : 0;
        SUCCEEDS(MPI_File_read_at(file, start, in, BYTES, MPI_BYTE, &status));
        compare("read_at", BYTES);
        memset(spread, 0, sizeof spread);
        SUCCEEDS(MPI_File_iread_at(file, start, spread, 1, memory, &request));
        SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int index = 0; index < BYTES; index++)
            in[index] = spread[index / 5 * 10 + index % 5];
        compare("iread_at", BYTES);
        MPI_Barrier(comm);
        SUCCEEDS(MPI_File_set_atomicity(file, 0));
    }
    MPI_Type_free(&memory);
    MPI_Type_free(&filetype);
    SUCCEEDS(MPI_File_close(&file));
}

/* The end of the file lies within a run: what is there is read, and counted. */
static void end_of_file(MPI_Info info)
{
    MPI_Datatype filetype = tile(100);
    MPI_File file = fresh(MPI_MODE_RDWR, info, filetype);
    MPI_Status status;
    int count;
    fill_bytes(out, BYTES, check_mix(check_rank));
    SUCCEEDS(MPI_File_write_at(file, 0, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(comm);
    SUCCEEDS(MPI_File_set_size(file, 1000L * (RUN * check_size + 100) + 3));
    SUCCEEDS(MPI_File_read_at(file, 40, in, BYTES, MPI_BYTE, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_EQUAL(count, 1000 * RUN - 40 + (check_rank == 0 ? 3 : 0));
    memmove(in + 40, in, (size_t)count);
    memcpy(in, out, 40);
    compare("up to the end", 40 + count);
    SUCCEEDS(MPI_File_close(&file));
    MPI_Type_free(&filetype);
}

/* What cannot be read cannot be mapped, and is written nevertheless; what is too long is an error, not a signal. */
static void not_mapped(MPI_Info info)
{
    MPI_Datatype filetype = tile(0);
    MPI_File file;
    fill_bytes(out, BYTES, check_mix(check_rank));
    SUCCEEDS(MPI_File_open(comm, path, MPI_MODE_WRONLY | MPI_MODE_CREATE, info, &file));
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_write_at(file, 0, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    SUCCEEDS(MPI_File_close(&file));
    SUCCEEDS(MPI_File_open(comm, path, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, info, &file));
    SUCCEEDS(MPI_File_set_view(file, 0, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    SUCCEEDS(MPI_File_read_at(file, 0, in, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    compare("written only", BYTES);
    CHECK(MPI_File_write_at(file, 0, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS, "a file for reading is written");
    SUCCEEDS(MPI_File_close(&file));

    struct rlimit before, short_files;
    getrlimit(RLIMIT_FSIZE, &before);
    short_files = before;
    short_files.rlim_cur = 10000;
    signal(SIGXFSZ, SIG_IGN);
    file = fresh(MPI_MODE_RDWR, info, filetype);
    setrlimit(RLIMIT_FSIZE, &short_files);
    int class, code = MPI_File_write_at(file, 0, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    setrlimit(RLIMIT_FSIZE, &before);
    MPI_Error_class(code, &class);
    CHECK_EQUAL(class, MPI_ERR_IO);
    SUCCEEDS(MPI_File_close(&file));
    MPI_Type_free(&filetype);
}

static atomic_int busy;

static void *shorten(void *unused)
{
    /* Now and then, so that it hits every part of a write. */
    for (unsigned turn = 0; atomic_load(&busy) && truncate(path, 0) == 0; turn++)
        usleep(turn * 37 % 900);
    return unused;
}

/* Somebody else makes the file shorter all the time: that is no reason to end, and what is written afterwards is there. */
static void made_shorter(MPI_Info info)
{
    enum { EACH = 22000 };
    static unsigned char data[RUN * EACH];
    MPI_Datatype filetype = tile(8);
    MPI_File file = fresh(MPI_MODE_RDWR, info, filetype);
    pthread_t thread;
    atomic_store(&busy, 1);
    CHECK(pthread_create(&thread, NULL, shorten, NULL) == 0, "a thread");
    for (int round = 0; round < 100; round++)
        SUCCEEDS(MPI_File_write_at(file, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE));
    atomic_store(&busy, 0);
    pthread_join(thread, NULL);
    MPI_Barrier(comm);
    fill_bytes(out, BYTES, check_mix(check_rank));
    SUCCEEDS(MPI_File_write_at(file, 0, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(comm);
    SUCCEEDS(MPI_File_read_at(file, 0, in, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    compare("after it was made shorter", BYTES);
    SUCCEEDS(MPI_File_close(&file));
    MPI_Type_free(&filetype);
}

/* On a device that is too small for the file: an error, whatever of it can be written. */
static void too_small(MPI_Info info)
{
    enum { EACH = 100000 };
    static unsigned char data[RUN * EACH];
    MPI_Datatype filetype = tile(8);
    MPI_File file = fresh(MPI_MODE_RDWR, info, filetype);
    for (int round = 0; round < 3; round++) {
        /* At first a hole, which has its length already. */
        SUCCEEDS(MPI_File_set_size(file, round == 0 ? 4L * RUN * EACH : 0));
        int class, code = MPI_File_write_at(file, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_Error_class(code, &class);
        CHECK_EQUAL(class, MPI_ERR_NO_SPACE);
    }
    SUCCEEDS(MPI_File_close(&file));
    MPI_Type_free(&filetype);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/chapter_14_sieving", folder ? folder : "/tmp");

    MPI_Info automatic = hints("automatic", "automatic", "no number"), always = hints("enable", "enable", "5000"),
             never = hints("disable", "disable", "1");
    if (argc > 1) {
        too_small(automatic);
        too_small(always);
        return check_end("chapter_14_sieving");
    }
    MPI_File file = fresh(MPI_MODE_RDWR, always, MPI_BYTE);
    shown(file, "romio_ds_write", "enable");
    shown(file, "ind_rd_buffer_size", "5000");
    SUCCEEDS(MPI_File_set_info(file, never));
    shown(file, "romio_ds_read", "disable");
    shown(file, "ind_wr_buffer_size", "1");
    SUCCEEDS(MPI_File_close(&file));

    /* Some ranks write run by run, beside those that do not. */
    MPI_Info mixed = check_rank % 2 ? never : automatic;
    MPI_Info each[] = {automatic, always, never, mixed};
    for (int index = 0; index < 4; index++) {
        side_by_side(each[index], 0, 8);
        side_by_side(each[index], 24, 8);
        every_form(each[index]);
        end_of_file(each[index]);
        not_mapped(each[index]);
    }
    side_by_side(always, 5000, 2);
    side_by_side(mixed, 0, 60);
    made_shorter(automatic);
    MPI_Info_free(&automatic);
    MPI_Info_free(&always);
    MPI_Info_free(&never);
    return check_end("chapter_14_sieving");
}
