/* The completions of a command line, for the shells. They come from the table of verbs, their
 * tables of options, the options of varve.conf and the store on the line. */
#ifndef VV_CLI_MAIN_COMPLETE_H
#define VV_CLI_MAIN_COMPLETE_H

#include "cli/base/verb_context.h"

/* argv: the command and its words; the last one, which may be "", is completed. Prints a line
 * TEXT<TAB>MEANING for each completion. The lines :files, :folders and :commands ask the shell for
 * such names. Prints nothing if something cannot be read. */
void vv_complete_print(struct vv_verb_context *job, int argc, char **argv);

#endif
