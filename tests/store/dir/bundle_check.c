/* STORE LINEAGE: every layer moves into a bundle of its own, for scripts that read it then. */
#include "support/members.h"
#include "vv_test.h"

int main(int argc, char **argv)
{
	CHECK_EQ(argc, 3);
	CHECK(members_move(argv[1], argv[2]) > 0);
	return 0;
}
