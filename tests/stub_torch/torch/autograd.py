class Function:
    @classmethod
    def apply(cls, *arguments):
        raise NotImplementedError("the stub of torch computes nothing")
