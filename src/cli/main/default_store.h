/* The store of a command that names none: the option `store`. */
#ifndef VV_CLI_MAIN_DEFAULT_STORE_H
#define VV_CLI_MAIN_DEFAULT_STORE_H

#include "cli/base/verb_context.h"

/* Puts the value of the option before the other operands, if the operand STORE was left out:
 * - There are too few operands.
 * - Or the first one is a name without '/', and the option is set. A file of that name makes it an
 *   error, because the name may then be meant as the store.
 * The added operand belongs to args. */
int vv_default_store_add(struct vv_args *args, const struct vv_cmd *cmd);

#endif
