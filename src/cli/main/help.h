/* The help: one text or one JSON object, made of the table of verbs and their tables of options. */
#ifndef VV_CLI_MAIN_HELP_H
#define VV_CLI_MAIN_HELP_H

#include "cli/base/verb_context.h"

/* `varve help [VERB]`, `varve --help`, `varve VERB --help`. name: the verb, or NULL for all. */
int vv_help_show(struct vv_verb_context *job, bool json, const char *name);

#endif
