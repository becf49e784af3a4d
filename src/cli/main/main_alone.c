/* varve: the command in one process. */
#include "cli/main/main.h"

int main(int argc, char **argv)
{
	return vv_main_run(argc, argv, NULL);
}
