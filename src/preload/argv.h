/* The words of the command line. A program keeps pointers to them (`s->name = argv[1]`), but they lie on the stack, behind an environment that is
 * longer in one run than in another. So they are copied to the heap before main, and are part of the state. */
#ifndef VV_PRELOAD_ARGV_H
#define VV_PRELOAD_ARGV_H

#include <stdbool.h>

/* By a thread that is settled. */
void vv_argv_begin(int argc, char **argv);
/* They are an object of the heap. */
bool vv_argv_is_moved(void);
/* The heap has become that of an epoch: what `argv` leads to are the words of this run all the same. */
void vv_argv_restored(void);

#endif
