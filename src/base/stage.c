#include "base/stage.h"

void (*vv_stage_hook)(const char *name) = NULL;
