/* Standard streams. Argument 1:
 *   digest  rank 0 reads all of its standard input and prints length and a digest; the others read nothing
 *   lines N each rank prints N lines in pieces; no line may be torn apart
 *   flood   writes for ever, until the pipe closes or the limit comes */
#include "check.h"

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    const char *what = argc > 1 ? argv[1] : "digest";
    if (strcmp(what, "digest") == 0) {
        uint64_t digest = 0xcbf29ce484222325u, length = 0;
        int byte;
        while ((byte = getchar()) != EOF) {
            digest = (digest ^ (uint64_t)byte) * 0x100000001b3u;
            length++;
        }
        if (check_rank == 0)
            printf("stdin: %llu bytes, digest %016llx\n", (unsigned long long)length, (unsigned long long)digest);
        else
            CHECK_EQUAL(length, 0);
        fflush(stdout);
    } else if (strcmp(what, "lines") == 0) {
        int lines = argc > 2 ? atoi(argv[2]) : 100;
        setvbuf(stdout, NULL, _IONBF, 0);
        for (int line = 0; line < lines; line++) {
            printf("[rank %d ", check_rank);
            printf("line %d ", line);
            for (int piece = 0; piece < 20; piece++)
                printf("%c%c%c%c", 'a' + check_rank % 26, 'a' + check_rank % 26, 'a' + check_rank % 26, 'a' + check_rank % 26);
            printf("]\n");
        }
    } else {
        for (;;)
            printf("rank %d writes and writes and writes and writes and writes\n", check_rank);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
