/* schema.c: the tables of SQL servers as text, for who has the right to make them and wants to read first. The
 * texts are those that the stores themselves run. */
#include "cli/schema.h"

#include <stdio.h>
#include <string.h>

#include "cli/mysql_schema.h"
#include "cli/mysql_upgrade.h"
#include "cli/postgres_schema.h"
#include "cli/postgres_upgrade.h"

static const struct {
    const char *scheme, *schema, *upgrade, *rights;
} kinds[] = {
    {"mysql:", mysql_schema, mysql_upgrade, "GRANT SELECT, INSERT, UPDATE ON simba_mutex TO USER;"},
    {"mariadb:", mysql_schema, mysql_upgrade,
     "GRANT SELECT, INSERT, UPDATE ON simba_mutex TO USER;"},
    {"postgresql:", postgres_schema, postgres_upgrade,
     "GRANT SELECT, INSERT, UPDATE ON simba_mutex TO ROLE;"},
    {"postgres:", postgres_schema, postgres_upgrade,
     "GRANT SELECT, INSERT, UPDATE ON simba_mutex TO ROLE;"},
};

bool schema_print(const char *url)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strncmp(url, kinds[i].scheme, strlen(kinds[i].scheme)) != 0)
            continue;
        printf("%s\n%s\n-- Who uses it needs no more than this ('simba doctor' has it with all "
               "names):\n-- %s\n",
               kinds[i].schema, kinds[i].upgrade, kinds[i].rights);
        return true;
    }
    return false;
}
