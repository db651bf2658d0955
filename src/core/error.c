/* error.c: the codes in words. One list in simba.h makes both, so none lacks its text. */
#include <simba.h>

const char *simba_strerror(int code)
{
#define SIMBA_X(name, number, text) \
    case SIMBA_E##name:             \
        return text;
    switch (code) {
        SIMBA_ERRORS(SIMBA_X)
    case SIMBA_OK:
        return "success";
    default:
        return "unknown error";
    }
#undef SIMBA_X
}
