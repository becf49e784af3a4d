// fileset_check FOLDER RANKS STEP: the checkpoint set of support/fileset.h, for scripts. Prints the names of its files.
#include "support/fileset.h"
#include "vv_test.h"

int main(int argc, char **argv)
{
	static char name[4096][FILESET_NAME];
	unsigned ranks;
	size_t n;

	CHECK_EQ(argc, 4);
	ranks = (unsigned)atoi(argv[2]);
	fileset_write(argv[1], ranks, (unsigned)atoi(argv[3]));
	n = fileset_list(ranks, name, 4096);
	for (size_t i = 0; i < n && i < 4096; i++)
		puts(name[i]);
	return 0;
}
