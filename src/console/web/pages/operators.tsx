import { Page } from '../parts/page.js';
import { OpenInvitations, useInvitation, UserTable } from './users.js';

export const OperatorsPage = () => {
  const invitation = useInvitation(null);
  return (
    <Page
      title="Operators"
      lead="Operators manage all accounts and this service."
      actions={invitation.button}
    >
      {invitation.problem}
      <UserTable accountId={null} empty={null} />
      <OpenInvitations accountId={null} />
      {invitation.dialog}
    </Page>
  );
};
