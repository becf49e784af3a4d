/* The arguments of the command line. A program keeps pointers to them (`s->name = argv[1]`). They
 * lie on the stack, behind an environment whose length differs between runs. So they are copied to
 * the heap before main, and are part of the state. */
#ifndef VV_PRELOAD_ARGV_H
#define VV_PRELOAD_ARGV_H

#include <stdbool.h>

/* To be called by a prepared thread. */
void vv_argv_begin(int argc, char **argv);
/* Returns whether they are an object of the heap. */
bool vv_argv_is_moved(void);
/* To be called after the heap of an epoch was restored: `argv` leads to the arguments of this run
 * again. */
void vv_argv_restored(void);

#endif
